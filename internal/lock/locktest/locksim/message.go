package locksim

import (
	"context"
	"errors"
	"strconv"
	"time"

	"example.com/shop/internal/lock"
)

// What a process sees of a lost message.
var (
	errReset   = errors.New("connection reset")
	errTimeout = errors.New("read timeout")
)

// fate is what the network does to one call.
type fate struct {
	there, back time.Duration
	loseRequest bool
	loseAnswer  bool
	reset       time.Duration // 0, or when the caller is told that its connection broke
	retry       bool          // the driver asks again by itself where the answer is lost
	repeat      time.Duration // 0, or how much later the request arrives once more
	linger      time.Duration // from the context's end to the return
	timeout     time.Duration // after which the driver gives up
}

// fate draws that of the n-th call of this kind on the key.
func (l *link) fate(kind, key string) fate {
	n := strconv.Itoa(l.count(kind + " " + key))
	w, ttl, healed := l.world.plan.weather, l.opt.TTL, l.world.healed()
	d := throw(l.world.plan, "fate", l.name, kind, key, n)
	delay := func() time.Duration {
		switch {
		case d.chance(w.slow) && !healed:
			return d.between(0, ttl*3/2)
		case l.slow && !healed:
			return d.between(0, ttl/10)
		}
		return d.between(50*time.Microsecond, prompt)
	}
	f := fate{there: delay(), back: delay(), timeout: 2*ttl + d.between(0, ttl), linger: l.world.linger(d)}
	if d.chance(w.repeat) {
		f.repeat = d.between(0, ttl*3/2)
	}
	if d.chance(w.lose) {
		switch d.IntN(5) {
		case 0:
			f.loseRequest = true
		case 1:
			f.loseAnswer = true
		case 2:
			f.loseAnswer, f.retry = true, true
		case 3:
			f.loseRequest, f.reset = true, d.between(0, prompt)
		case 4: // though the request arrives
			f.reset = d.between(0, prompt)
		}
	}
	if w.faithful() {
		f.timeout = time.Hour // answers come, and the driver waits for them
	} else if healed {
		f = fate{there: f.there, back: f.back, linger: f.linger, timeout: f.timeout}
	}
	return f
}

// prompt is how long a message takes at most where nothing is wrong.
const prompt = 3 * time.Millisecond

type answer[T any] struct {
	value T
	err   error
}

// exchange sends a request to the server, where do answers it.
func exchange[T any](ctx context.Context, l *link, kind string, c lock.Claim, do func() (T, error)) (T, error) {
	f := l.fate(kind, c.Key)
	answers := make(chan answer[T], 1)
	l.world.spawn(func() { deliver(l, kind, c, f, do, answers) })
	timeout, reset := time.NewTimer(f.timeout), time.NewTimer(f.reset)
	defer timeout.Stop()
	defer reset.Stop()
	if f.reset == 0 {
		reset.Stop()
	}
	var none T
	select {
	case a := <-answers:
		return a.value, a.err
	case <-reset.C:
		return none, errReset
	case <-timeout.C:
		return none, errTimeout
	case <-ctx.Done():
		time.Sleep(f.linger)
		return none, ctx.Err()
	}
}

// deliver is a request's way to the server, and its answer's way back.
func deliver[T any](l *link, kind string, c lock.Claim, f fate, do func() (T, error), answers chan<- answer[T]) {
	lost := l.cut(cutThere)
	time.Sleep(f.there)
	if lost || f.loseRequest || l.cut(cutThere) {
		l.note("%s %s by %s: request lost", kind, c.Key, l.alias(c.Owner))
		return
	}
	value, err := do()
	if f.repeat > 0 {
		l.world.spawn(func() {
			time.Sleep(f.repeat)
			if !l.cut(cutThere) {
				_, err := do()
				l.note("%s %s by %s: arrived once more: %v", kind, c.Key, l.alias(c.Owner), err)
			}
		})
	}
	lost = l.cut(cutBack)
	time.Sleep(f.back)
	if lost || f.loseAnswer || l.cut(cutBack) {
		l.note("%s %s by %s: answer lost", kind, c.Key, l.alias(c.Owner))
		if !f.retry {
			return
		}
		time.Sleep(f.there)
		if l.cut(cutThere) || l.cut(cutBack) {
			return
		}
		value, err = do()
		time.Sleep(f.back)
	}
	answers <- answer[T]{value, err}
}
