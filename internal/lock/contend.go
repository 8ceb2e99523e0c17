package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// contend asks the store for the key, as the only caller of this process that
// does. One that fails leaves its turn to the next in line.
func (l *Locker) contend(ctx, bounded context.Context, q *line, wait bool) (*Lease, error) {
	fail := func(err error) (*Lease, error) {
		l.passTurn(q)
		if bounded.Err() != nil || l.closed() {
			return nil, l.gaveUp(ctx, q.key)
		}
		return nil, notAcquired(q.key, err)
	}
	for contended := false; ; {
		if q.owner == "" {
			q.owner = newOwner()
		}
		claim := Claim{Key: q.key, Owner: q.owner, TTL: l.opt.TTL, Queue: wait}
		sent := time.Now()
		grant, err := l.ask(bounded, q, claim)
		if err != nil {
			return fail(err)
		}
		if !grant.Held {
			if lease := l.enter(ctx, q, sent, grant); lease != nil {
				return lease, nil
			}
			// The answer took too long for the lease to be trusted. Who asked in
			// vain goes to the end of the store's line: others may be nearer to it.
			if !wait || bounded.Err() != nil || l.closed() {
				return fail(ErrNoAnswer)
			}
			q.owner = ""
			l.background(func() { l.giveBack(claim) })
			continue
		}
		if !contended {
			contended = true
			l.observe(func(o Observer) { o.Contended(q.key) })
		}
		if !wait {
			q.owner = "" // it stands nowhere in the store
			return fail(nil)
		}
		if err := l.pause(bounded, claim, grant); err != nil {
			return fail(err)
		}
	}
}

// ask sends one request. If the caller gives up before the answer, what the
// request may have taken is given back after the answer has come, so that the
// two cannot overtake each other. That is why the request does not end with the
// caller's context: a driver that returns sooner leaves it on its way.
func (l *Locker) ask(ctx context.Context, q *line, c Claim) (Grant, error) {
	call, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), l.patience(), ErrNoAnswer)
	type answer struct {
		grant Grant
		err   error
	}
	answers := make(chan answer, 1)
	l.background(func() {
		grant, err := l.backend.Acquire(call, c)
		answers <- answer{grant, err}
	})
	err := ErrClosed
	select {
	case a := <-answers:
		cancel()
		return a.grant, a.err
	case <-call.Done():
		err = context.Cause(call)
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-l.open.Done():
	}
	q.owner = "" // whoever asks next is not to be mixed up with this request
	l.background(func() {
		<-answers
		cancel()
		l.giveBack(c)
	})
	return Grant{}, err
}

// pause waits until it is worth asking again.
func (l *Locker) pause(ctx context.Context, c Claim, g Grant) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.open, cancel)()
	return l.backend.Wait(ctx, c, g)
}

// giveBack releases what the owner may hold, or its place in line. It tries for
// as long as the store may keep it.
func (l *Locker) giveBack(c Claim) {
	const most = time.Second
	for end, nap := time.Now().Add(c.TTL), 10*time.Millisecond; ; nap = min(2*nap, most) {
		err := l.release(c)
		if err == nil || errors.Is(err, ErrLost) || time.Now().After(end) {
			return
		}
		select {
		case <-time.After(nap):
		case <-l.open.Done():
			return
		}
	}
}

// release is one bounded attempt, independent of any caller's context.
func (l *Locker) release(c Claim) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), l.patience(), ErrNoAnswer)
	defer cancel()
	done := make(chan error, 1)
	l.background(func() { done <- l.backend.Release(ctx, c) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// patience is how long an answer of the store is waited for.
func (l *Locker) patience() time.Duration {
	return max(l.opt.TTL/3, time.Second)
}

// newOwner returns a name that no other acquisition has.
func newOwner() string {
	return fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
}
