package store

import (
	"context"
	"errors"
	"fmt"
)

// ended is the reason that a context gives for its end: its error, and its cause
// where that says more.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// withCause adds why ctx ended to an error that its end may have caused. The
// drivers say "interrupted" or "invalid connection".
func withCause(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	fault := Classify(err)
	if fault == Interrupted || fault == Lost || isContext(err) {
		return fmt.Errorf("%w: %w", ended(ctx), err)
	}
	return err
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
