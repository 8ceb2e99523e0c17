package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
}

// listenTime is how long the first one to wait gives Redis to confirm the
// subscription.
const listenTime = 500 * time.Millisecond

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
		go w.receive(w.sub, w.up, w.done)
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

// receive subscribes, and passes on what Redis publishes until it is closed. A
// lost connection is opened again by the client.
func (w *wakeups) receive(sub *redis.PubSub, up, done chan struct{}) {
	defer close(done)
	_ = sub.Subscribe(w.open, w.prefix+w.process) // a failure is tried again by what follows
	confirmed := false
	for m := range sub.ChannelWithSubscriptions() {
		switch m := m.(type) {
		case *redis.Message:
			w.tell(m.Payload)
		case *redis.Subscription:
			if !confirmed {
				confirmed = true
				close(up)
				continue
			}
			w.tellAll() // the connection was gone for a while, and calls with it
		}
	}
}

// tell wakes the owner's waiter, if it has one.
func (w *wakeups) tell(owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if told := w.waiters[owner]; told != nil {
		wakeUp(told)
	}
}

func (w *wakeups) tellAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, told := range w.waiters {
		wakeUp(told)
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
	err := sub.Close()
	<-done
	if errors.Is(err, redis.ErrClosed) { // the client was closed first
		return nil
	}
	return err
}
