package redlock_test

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"example.com/shop/internal/lock/testserver"
)

func TestMain(m *testing.M) {
	logging.Disable() // of each dial to a node that a test has taken down
	goleak.VerifyTestMain(testserver.Wrap(m))
}
