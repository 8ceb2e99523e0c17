package orderhttp_test

import (
	"testing"

	"go.uber.org/goleak"

	"example.com/shop/internal/lock/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }
