package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// wakeups brings the calls of releases to the waiters of this process, over one
// subscription that is opened when the first of them has to wait. An owner's
// name in Redis starts with the process's, which is also its channel's.
type wakeups struct {
	client  redis.UniversalClient
	prefix  string // of channels
	process string

	open context.Context // ends with close
	shut context.CancelFunc

	mu      sync.Mutex               // never held during I/O
	waiters map[string]chan struct{} // by owner; capacity 1
	sub     *redis.PubSub            // nil until the first wait
	up      chan struct{}            // closed when the subscription is confirmed
	done    chan struct{}            // closed when its goroutine has ended
	check   *time.Timer

	heard atomic.Bool    // something, since the last check
	work  sync.WaitGroup // of what a check began
}

// listenTime is how long the first one to wait gives Redis to confirm the
// subscription.
const listenTime = 500 * time.Millisecond

// checkTime is how often the subscription's connection is tried. One that brought
// no answer for as long is given up.
const checkTime = 3 * time.Second

func newWakeups(client redis.UniversalClient, prefix string) *wakeups {
	open, shut := context.WithCancel(context.Background())
	return &wakeups{
		client:  client,
		prefix:  prefix,
		process: newOwner(),
		open:    open,
		shut:    shut,
		waiters: make(map[string]chan struct{}),
	}
}

// name is what an owner of this process is called in Redis.
func (w *wakeups) name(owner string) string { return w.process + ":" + owner }

// expect returns the channel on which the owner is told to ask again.
func (w *wakeups) expect(owner string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := w.waiters[owner]
	if told == nil {
		told = make(chan struct{}, 1)
		w.waiters[owner] = told
	}
	return told
}

// forget ends what expect began.
func (w *wakeups) forget(owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiters, owner)
}

// ready reports whether the subscription stands.
func (w *wakeups) ready() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sub == nil {
		return false
	}
	select {
	case <-w.up:
		return true
	default:
		return false
	}
}

// listen opens the subscription, once, and waits until Redis has confirmed it.
func (w *wakeups) listen(ctx context.Context) error {
	w.mu.Lock()
	if w.open.Err() != nil {
		w.mu.Unlock()
		return ErrClosed
	}
	if w.sub == nil {
		w.sub = w.client.Subscribe(w.open) // to nothing yet: no I/O
		w.up, w.done = make(chan struct{}), make(chan struct{})
		w.heard.Store(true)
		w.check = time.AfterFunc(checkTime, w.try)
		go w.receive(w.up, w.done)
	}
	up := w.up
	w.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, listenTime, ErrNoAnswer)
	defer cancel()
	select {
	case <-up:
		return nil
	case <-w.open.Done():
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("redis: subscribe: %w", context.Cause(ctx))
	}
}

// receive subscribes, and passes on what Redis publishes until it is closed.
func (w *wakeups) receive(up, done chan struct{}) {
	defer close(done)
	confirmed := false
	for sub := w.subscribe(nil); sub != nil; {
		message, err := sub.Receive(w.open)
		switch m := message.(type) {
		case *redis.Message:
			w.tell(m.Payload)
		case *redis.Subscription:
			w.stands(up, !confirmed)
			confirmed = true
		}
		if err == nil {
			w.heard.Store(true)
			continue
		}
		select {
		case <-time.After(reconnectTime):
		case <-w.open.Done():
		}
		sub = w.subscribe(sub)
	}
}

// reconnectTime is how long a subscription that failed is left alone.
const reconnectTime = 100 * time.Millisecond

// subscribe returns the subscription to go on with, nil after close. The client
// opens a connection that was lost again by itself; a subscription that was given
// up is replaced.
func (w *wakeups) subscribe(old *redis.PubSub) *redis.PubSub {
	w.mu.Lock()
	sub := w.sub
	closed := w.open.Err() != nil
	w.mu.Unlock()
	if closed {
		return nil
	}
	if sub != old {
		_ = sub.Subscribe(w.open, w.prefix+w.process) // Receive tries again what fails here
	}
	return sub
}

// try pings, and gives up a connection that has not answered the last time: one
// that died in silence would not be noticed otherwise.
func (w *wakeups) try() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open.Err() != nil {
		return
	}
	w.check.Reset(checkTime)
	sub := w.sub
	if w.heard.Swap(false) {
		w.work.Go(func() { w.ping(sub) })
		return
	}
	w.heard.Store(true) // the new one gets its time
	w.sub = w.client.Subscribe(w.open)
	w.work.Go(func() { _ = sub.Close() })
}

func (w *wakeups) ping(sub *redis.PubSub) {
	ctx, cancel := context.WithTimeout(w.open, checkTime)
	defer cancel()
	_ = sub.Ping(ctx) // its answer tells, or its absence
}

// tell wakes the waiter of an owner of that name, if it has one.
func (w *wakeups) tell(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	owner := strings.TrimPrefix(name, w.name(""))
	if told := w.waiters[owner]; told != nil {
		wakeUp(told)
	}
}

// stands wakes all who expect a call: the connection may have been gone for a
// while, and calls with it. If it stands for the first time, these are the ones who
// could not wait for that and are in no line; who expects a call after this finds up
// closed.
func (w *wakeups) stands(up chan struct{}, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, told := range w.waiters {
		wakeUp(told)
	}
	if first {
		close(up)
	}
}

func wakeUp(told chan struct{}) {
	select {
	case told <- struct{}{}:
	default: // told already
	}
}

func (w *wakeups) close() error {
	w.mu.Lock()
	first := w.open.Err() == nil
	w.shut()
	sub, done := w.sub, w.done
	w.mu.Unlock()
	if sub == nil || !first {
		return nil
	}
	w.check.Stop()
	err := sub.Close()
	<-done
	w.work.Wait()
	if errors.Is(err, redis.ErrClosed) { // the client was closed first
		return nil
	}
	return err
}
