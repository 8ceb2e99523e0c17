package locksim

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/lock"
)

// lastTurn begins when the faults are over: whoever waits is served, in a
// bounded time, whatever was lost before.
func (k *worker) lastTurn() {
	w := k.world
	d := throw(w.plan, "last", k.name)
	key := oneOf(d, w.plan.keys...)
	if !w.closedAt(k.link).IsZero() || k.link.crashed() {
		return
	}
	began := time.Now()
	for {
		asked := time.Now()
		k.note("wants %s for the last time", key)
		got, err := k.locker.Acquire(context.Background(), key)
		k.checkReturn(context.Background(), key, asked, never(), err)
		switch {
		case err == nil:
			e := w.begin(k.link, k.name, key, asked, got)
			time.Sleep(prompt)
			k.write(e, d)
			k.release(e)
		case errors.Is(err, lock.ErrTimeout) || errors.Is(err, lock.ErrQueueFull):
			time.Sleep(d.between(0, k.link.opt.TTL/10))
			continue
		}
		if took := time.Since(began); took > w.patience() {
			k.broke("waited for %s for %v after the faults", key, took)
		}
		return
	}
}

// patience is how long the last turns may take in all: messages that were under
// way arrive, leases of the crashed run out, and then each holder has its turn.
// A place in line whose owner has gone costs a reservation.
func (w *world) patience() time.Duration {
	workers := 0
	for _, q := range w.plan.processes {
		workers += q.workers
	}
	return 10*w.plan.longest + time.Duration(workers)*(reservation+2*w.plan.longest)
}
