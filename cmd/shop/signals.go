package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// signalError is the cause of a context that a second signal has ended.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "a second signal came: " + e.signal.String() }

// exitCode is what shells report of a process that a signal ended.
func (e *signalError) exitCode() int {
	if number, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitFailed
}

// doubled is how soon after the first signal another one still counts as the
// same: timeout(1) sends one to the process and one to its group.
const doubled = 100 * time.Millisecond

// untilSecond returns a context that outlives ctx, which the first SIGINT or
// SIGTERM ends: the second ends it, with a signalError as its cause. A third one
// kills the process.
func untilSecond(ctx context.Context) (context.Context, context.CancelFunc) {
	second, end := context.WithCancelCause(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer signal.Stop(signals)
		select {
		case <-ctx.Done():
		case <-second.Done():
			return
		}
		time.Sleep(doubled)
		select {
		case <-signals: // the first
		default:
		}
		select {
		case s := <-signals:
			end(&signalError{s})
		case <-second.Done():
		}
	}()
	return second, func() { end(nil) }
}
