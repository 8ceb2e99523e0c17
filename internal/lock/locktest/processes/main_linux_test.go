package processes

import (
	"log"
	"os"
	"testing"

	"go.uber.org/goleak"

	"example.com/shop/internal/lock/testserver"
)

func TestMain(m *testing.M) {
	if args := os.Getenv(childArgs); args != "" {
		if err := beChild(args); err != nil {
			log.Fatal(err) //nolint:forbidigo // this process is a child, not the test
		}
		return
	}
	goleak.VerifyTestMain(testserver.Wrap(m))
}
