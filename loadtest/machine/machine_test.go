package machine_test

import (
	"runtime"
	"testing"

	"example.com/shop/loadtest/machine"
)

func TestLook(t *testing.T) {
	t.Parallel()
	got := machine.Look()
	if got.OS != runtime.GOOS || got.Arch != runtime.GOARCH || got.Go != runtime.Version() || got.CPUs < 1 {
		t.Errorf("got %+v", got)
	}
}

func TestAllowConnections(t *testing.T) {
	t.Parallel()
	if err := machine.AllowConnections(1); err != nil {
		t.Errorf("for one connection: got %v, want nil", err)
	}
}
