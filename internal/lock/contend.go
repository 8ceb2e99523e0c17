package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"
)

// contend asks the store for the key, as the only caller of this process that
// does. One that fails leaves its turn to the next in line.
func (l *Locker) contend(c caller, q *line) (*Lease, error) {
	for contended := false; ; {
		if l.over(c) != nil { // also: its turn, or a call, came in the same instant
			return nil, l.fail(c, q, nil)
		}
		if q.owner == "" {
			q.owner = newOwner()
		}
		claim := Claim{Key: q.key, Owner: q.owner, TTL: l.opt.TTL, Queue: c.wait}
		sent := time.Now()
		grant, err := l.ask(c, q, claim)
		if err != nil {
			return nil, l.fail(c, q, err)
		}
		if !grant.Held {
			if lease := l.enter(c.ctx, q, sent, grant); lease != nil {
				return lease, nil
			}
			// The caller has gone, or the answer took too long for the lease to be
			// trusted. Who asked in vain goes to the end of the store's line: others
			// may be nearer to it.
			if !c.wait || l.over(c) != nil {
				return nil, l.fail(c, q, ErrNoAnswer)
			}
			q.owner = ""
			l.background(func() { l.giveBack(claim) })
			continue
		}
		if !contended {
			contended = true
			l.observe(func(o Observer) { o.Contended(q.key) })
		}
		if !c.wait {
			q.owner = "" // it stands nowhere in the store
			return nil, l.fail(c, q, nil)
		}
		if err := l.pause(c, q, claim, grant); err != nil {
			return nil, l.fail(c, q, err)
		}
	}
}

// fail ends the caller's turn. Its error is why it waits no longer, or else err.
func (l *Locker) fail(c caller, q *line, err error) error {
	l.passTurn(q)
	if over := l.over(c); over != nil {
		err = over
	}
	return notAcquired(q.key, err)
}

// ask sends one request, in the caller's own goroutine unless its time may end
// before the answer comes. Then the caller returns, and leaves the request to
// another. What an unanswered request may have taken is given back.
func (l *Locker) ask(c caller, q *line, claim Claim) (Grant, error) {
	if end, ok := c.end(); ok && time.Until(end) < l.patience() {
		return l.askWithin(c, q, claim)
	}
	grant, err := l.send(c.ctx, claim)
	if err != nil {
		q.owner = "" // whoever asks next is not to be mixed up with this request
		l.background(func() { l.giveBack(claim) })
	}
	return grant, err
}

func (l *Locker) askWithin(c caller, q *line, claim Claim) (Grant, error) {
	ctx, stop := l.waiting(c, q)
	defer stop()
	var grant Grant
	var err error
	answered := make(chan struct{})
	l.background(func() {
		grant, err = l.send(c.ctx, claim)
		close(answered)
	})
	select {
	case <-answered:
		if err == nil {
			return grant, nil
		}
	case <-ctx.Done():
	}
	q.owner = ""
	l.background(func() {
		<-answered // so that giving back cannot overtake the request
		l.giveBack(claim)
	})
	if ctx.Err() != nil {
		return Grant{}, ctx.Err()
	}
	return Grant{}, err
}

// send does not end with the caller's context: a driver would return, and the
// request be still on its way.
func (l *Locker) send(ctx context.Context, claim Claim) (Grant, error) {
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	r := l.request(ctx, l.patience())
	grant, err := l.backend.Acquire(r, claim)
	return grant, l.end(r, err)
}

// pause waits until it is worth asking again.
func (l *Locker) pause(c caller, q *line, claim Claim, g Grant) error {
	ctx, stop := l.waiting(c, q)
	defer stop()
	return l.backend.Wait(ctx, claim, g)
}

// waiting returns a context that ends when the caller's wait does: with its
// context, after MaxWait, and with Close.
func (l *Locker) waiting(c caller, q *line) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	late := &alarm{wake: func() { cancel(ErrTimeout) }}
	if !c.until.IsZero() {
		l.waits.set(late, c.until)
	}
	l.mu.Lock()
	q.quit = cancel
	if l.closed() {
		cancel(ErrClosed)
	}
	l.mu.Unlock()
	return ctx, func() {
		l.waits.clear(late)
		cancel(nil)
	}
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
	r := l.request(context.Background(), l.patience())
	return l.end(r, l.backend.Release(r, c))
}

// patience is how long an answer of the store is waited for.
func (l *Locker) patience() time.Duration {
	return max(l.opt.TTL/3, time.Second)
}

// newOwner returns a name that no other acquisition has.
func newOwner() string {
	name := strconv.AppendUint(make([]byte, 0, 26), rand.Uint64(), 36)
	return string(strconv.AppendUint(name, rand.Uint64(), 36))
}
