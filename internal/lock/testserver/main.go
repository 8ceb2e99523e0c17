package testserver

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"

	"github.com/testcontainers/testcontainers-go/log"
)

// Runner is what goleak.VerifyTestMain and os.Exit need of a *testing.M.
type Runner struct{ m interface{ Run() int } }

// Main runs the tests and removes the containers that they shared. It returns the exit code.
func Main(m *testing.M) int { return Wrap(m).Run() }

// Wrap is Main for goleak.VerifyTestMain, which calls Run itself and looks for leaks after it.
func Wrap(m *testing.M) Runner { return Runner{m: m} }

// Run runs the tests, then removes the containers. The code is not 0 if a test failed or a container is left.
func (r Runner) Run() int {
	log.SetDefault(silent{})
	pool.open()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-interrupted:
			_ = pool.close()
			os.Exit(130) // 128 + SIGINT, as shells count
		case <-done:
		}
	})
	code := r.m.Run()
	signal.Stop(interrupted)
	close(done)
	watcher.Wait()
	if err := pool.close(); err != nil {
		fmt.Fprintln(os.Stderr, "testserver: containers are left behind:", err)
		return max(code, 1)
	}
	return code
}

// silent drops testcontainers' progress lines.
type silent struct{}

func (silent) Printf(string, ...any) {}
