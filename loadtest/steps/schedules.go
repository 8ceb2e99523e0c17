package steps

import "context"

// forUpdate reads the stock in its transaction, under the row's lock.
const forUpdate = "for-update"

// lostUpdate: A stops between reading and writing.
func lostUpdate(ctx context.Context, s *stage) error {
	stop, enough := "step:writing", doneOrWaits
	if s.how.Name == forUpdate {
		stop, enough = "sql:UPDATE", either(doneOrWaits, started("BEGIN"))
	}
	a := s.order(ctx, A, stop)
	if err := a.until(ctx, "stops before it writes", stopped); err != nil {
		return err
	}
	b := s.order(ctx, B, "")
	if err := b.until(ctx, "is done, or waits for A", enough); err != nil {
		return err
	}
	return a.resume(ctx)
}

// crash: A's process dies with the lock, or halfway to it.
func crash(ctx context.Context, s *stage) error {
	stop := "step:lock-held"
	if s.how.Name == "setnx-expire" {
		stop = "redis:PEXPIRE"
	}
	a := s.order(ctx, A, stop)
	if err := a.until(ctx, "stops with the lock", stopped); err != nil {
		return err
	}
	if err := s.kill(); err != nil {
		return err
	}
	s.order(ctx, B, "")
	return nil
}

// pause: A's process stands still until its lock has run out, and writes then.
func pause(ctx context.Context, s *stage) error {
	a := s.order(ctx, A, "step:writing")
	if err := a.until(ctx, "stops before it writes", stopped); err != nil {
		return err
	}
	if err := s.pause(); err != nil {
		return err
	}
	b := s.order(ctx, B, "")
	if err := b.until(ctx, "is done", func(p progress) bool { return p.done }); err != nil {
		return err
	}
	if err := s.unpause(); err != nil {
		return err
	}
	return a.resume(ctx)
}

// earlyRelease: A stops before its COMMIT.
func earlyRelease(ctx context.Context, s *stage) error {
	a := s.order(ctx, A, "sql:COMMIT")
	if err := a.until(ctx, "stops before its COMMIT", stopped); err != nil {
		return err
	}
	b := s.order(ctx, B, "")
	if err := b.until(ctx, "has read the stock, or waits for A", either(doneOrWaits, took("read"))); err != nil {
		return err
	}
	return a.resume(ctx)
}

// lateRelease: A gives its lock back when that has run out, and B has the next one.
func lateRelease(ctx context.Context, s *stage) error {
	stop := "step:committed"
	if s.how.Name == "blind-del" || s.how.Name == "get-then-del" {
		stop = "redis:DEL"
	}
	a := s.order(ctx, A, stop)
	if err := a.until(ctx, "stops before it gives its lock back", stopped); err != nil {
		return err
	}
	if err := s.pause(); err != nil {
		return err
	}
	b := s.order(ctx, B, "step:writing")
	if err := b.until(ctx, "stops before it writes", stopped); err != nil {
		return err
	}
	if err := s.unpause(); err != nil {
		return err
	}
	if err := a.resume(ctx); err != nil {
		return err
	}
	if err := a.until(ctx, "has an answer", func(p progress) bool { return p.done }); err != nil {
		return err
	}
	again := s.order(ctx, A, "")
	if err := again.until(ctx, "is done, or waits for B", doneOrWaits); err != nil {
		return err
	}
	return b.resume(ctx)
}
