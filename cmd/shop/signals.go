package main

import (
	"context"
	"log/slog"
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

const secondCounts = "still closing: another signal cuts orders off"

// untilSecond returns a context that outlives ctx, which the first SIGINT or
// SIGTERM ends: the second ends it, with a signalError as its cause. A third one
// kills the process. The log says from when on a signal counts as the second.
func untilSecond(ctx context.Context, log *slog.Logger) (context.Context, context.CancelFunc) {
	second, end := context.WithCancelCause(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer signal.Stop(signals)
		if s := secondOf(signals, second.Done(), log); s != nil {
			end(&signalError{s})
		}
	}()
	return second, func() { end(nil) }
}

// secondOf returns the second of the signals, or nil once done is closed.
func secondOf(signals <-chan os.Signal, done <-chan struct{}, log *slog.Logger) os.Signal {
	select {
	case <-signals:
	case <-done:
		return nil
	}
	select {
	case <-time.After(doubled):
	case <-done:
		return nil
	}
	select {
	case <-signals: // the first once more
	default:
	}
	log.Info(secondCounts)
	select {
	case s := <-signals:
		return s
	case <-done:
		return nil
	}
}
