package main

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// "how soon after the first signal another one still counts as the same", and "The
// log says from when on a signal counts as the second."
func TestSecondOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gap  time.Duration
		want bool // whether the second signal counts
	}{
		"at once":      {0, false},
		"still within": {doubled - 1, false},
		"later":        {doubled + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				signals, done, got := make(chan os.Signal, 1), make(chan struct{}), make(chan os.Signal, 1)
				log := &bytes.Buffer{}
				go func() { got <- secondOf(signals, done, slog.New(slog.NewTextHandler(log, nil))) }()
				signals <- syscall.SIGTERM
				synctest.Wait()
				time.Sleep(c.gap)
				synctest.Wait()
				if said := strings.Contains(log.String(), secondCounts); said != c.want {
					t.Errorf("got %q in the log after %v", log, c.gap)
				}
				signals <- syscall.SIGINT
				time.Sleep(doubled)
				synctest.Wait()
				close(done)
				if s := <-got; (s != nil) != c.want {
					t.Errorf("got %v as the second signal, %v after the first", s, c.gap)
				}
			})
		})
	}
}
