package store

import (
	"context"
	"fmt"
	"time"
)

// How a server that does not answer yet is asked again.
const (
	firstPause  = 50 * time.Millisecond // doubled each time
	lastPause   = time.Second
	pingTimeout = 5 * time.Second // one attempt: an address that swallows packets is no reason to wait for ever
)

// await pings until the ping succeeds, fails for good, or ctx ends. The error
// then says who did not answer, for how long, and why.
func await(ctx context.Context, who string, ping func(context.Context) error, passing func(error) bool) error {
	start := time.Now()
	var cause error
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := pingOnce(ctx, ping)
		if err == nil {
			return nil
		}
		// An attempt that ctx cut short tells nothing new.
		if cause == nil || ctx.Err() == nil {
			cause = err
		}
		if ctx.Err() == nil && !passing(err) {
			return fmt.Errorf("%s: %w", who, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%s did not answer for %v: %w, last error: %w; check that it runs, that the address is right, and that it can be reached from here",
				who, time.Since(start).Round(10*time.Millisecond), ended(ctx), cause)
		}
	}
}

func pingOnce(ctx context.Context, ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return ping(ctx)
}
