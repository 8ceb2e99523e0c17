package lock

import (
	"context"
	"fmt"
	"time"
)

// request is the context of one request to the store. It has a deadline, and
// ends then at the latest, without a timer of its own.
type request struct {
	context.Context
	cancel   context.CancelCauseFunc
	deadline time.Time
	late     alarm
}

// request begins one, under ctx, for as long as patience allows.
func (l *Locker) request(ctx context.Context, patience time.Duration) *request {
	r := &request{deadline: time.Now().Add(patience)}
	if d, ok := ctx.Deadline(); ok && d.Before(r.deadline) {
		r.deadline = d
	}
	r.Context, r.cancel = context.WithCancelCause(ctx)
	r.late.wake = func() { r.cancel(ErrNoAnswer) }
	l.requests.set(&r.late, r.deadline)
	return r
}

// end is called when the request's answer has come, or none will; err is its
// error.
func (l *Locker) end(r *request, err error) error {
	l.requests.clear(&r.late)
	r.cancel(nil)
	if err != nil && !time.Now().Before(r.deadline) {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return err
}

// Deadline implements context.Context.
func (r *request) Deadline() (time.Time, bool) { return r.deadline, true }

// Err implements context.Context.
func (r *request) Err() error {
	err := r.Context.Err()
	if err != nil && !time.Now().Before(r.deadline) {
		return context.DeadlineExceeded
	}
	return err
}
