package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// wakeups delivers the messages of releases to the waiters of this process, over one subscription, which the first Acquire
// opens. An owner's name in Redis starts with the name of the process, which is also the name of its channel.
type wakeups struct {
	client  redis.UniversalClient
	prefix  string // of the channel's name
	process string
	broken  func() // is called when the subscription has failed

	// patience is the time in which Redis has to confirm a subscription. A subscription that is silent for as long is
	// pinged, and closed if it stays silent.
	patience time.Duration

	open context.Context // ends with close
	shut context.CancelFunc
	work sync.WaitGroup
	once sync.Once // of the subscription

	tried  context.Context // ends when the first attempt to subscribe has succeeded or failed
	settle context.CancelFunc

	mu      sync.Mutex               // never held during I/O
	waiters map[string]chan struct{} // by owner; capacity 1, sent to only while mu is held

	// confirmed is true once a subscription was confirmed, even if the subscription breaks later: a request that looks
	// for an owner in Redis' queue has to name the same key as the one that put it there.
	confirmed bool
}

func newWakeups(client redis.UniversalClient, prefix string, broken func()) *wakeups {
	w := &wakeups{
		client:   client,
		prefix:   prefix,
		process:  rand.Text(),
		broken:   broken,
		patience: 3 * time.Second,
		waiters:  make(map[string]chan struct{}),
	}
	w.tried, w.settle = context.WithCancel(context.Background())
	w.open, w.shut = context.WithCancel(context.Background())
	return w
}

// name returns the name in Redis of an owner of this process.
func (w *wakeups) name(owner string) string { return w.process + ":" + owner }

// expect returns the channel on which the owner is woken to ask again, whether expect was called for the owner before, and
// whether a subscription was confirmed. If not, the confirmation wakes the owner.
func (w *wakeups) expect(owner string) (woken <-chan struct{}, before, confirmed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	channel, before := w.waiters[owner]
	if !before {
		channel = make(chan struct{}, 1)
		w.waiters[owner] = channel
	}
	return channel, before, w.confirmed
}

// forget ends what expect began.
func (w *wakeups) forget(owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiters, owner)
}

// listen opens the subscription, once, and waits for its confirmation for half of the remaining time.
func (w *wakeups) listen(ctx context.Context) {
	w.once.Do(func() { w.work.Go(w.subscribe) })
	if w.tried.Err() != nil {
		return
	}
	end, _ := ctx.Deadline()
	select {
	case <-w.tried.Done():
	case <-time.After(min(w.patience, time.Until(end)/2)):
	case <-ctx.Done():
	}
}

// subscribe keeps a subscription until close. After each failed subscription it waits twice as long, up to a second.
func (w *wakeups) subscribe() {
	const shortNap = 100 * time.Millisecond
	nap := shortNap
	for w.open.Err() == nil {
		sub := w.client.Subscribe(w.open) // to no channel yet, without I/O
		stop := context.AfterFunc(w.open, func() { _ = sub.Close() })
		err := sub.Subscribe(w.open, w.prefix+"wake:"+w.process)
		worked := err == nil && w.receive(sub)
		stop()
		_ = sub.Close()
		w.settle()
		w.broken()
		nap = min(2*nap, time.Second)
		if worked {
			nap = shortNap
		}
		sleep(w.open, nap)
	}
}

// receive handles messages until the connection fails or a ping has no answer. It reports whether the subscription was
// confirmed.
func (w *wakeups) receive(sub *redis.PubSub) (worked bool) {
	pinged := false
	for {
		message, err := sub.ReceiveTimeout(w.open, w.patience)
		var network net.Error
		switch {
		case err == nil:
			pinged = false
		case !pinged && errors.As(err, &network) && network.Timeout() && sub.Ping(w.open) == nil:
			pinged = true
		default:
			return worked
		}
		switch m := message.(type) {
		case *redis.Message:
			w.wake(m.Payload)
		case *redis.Subscription:
			worked = true
			w.subscribed()
		}
	}
}

// wake wakes the waiter of the owner with this name in Redis, if there is one.
func (w *wakeups) wake(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if woken := w.waiters[strings.TrimPrefix(name, w.name(""))]; woken != nil && len(woken) == 0 {
		woken <- struct{}{}
	}
}

// subscribed wakes all waiters: messages may be lost, and waiters that came before a confirmation are not in the queue.
func (w *wakeups) subscribed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.confirmed = true
	for _, woken := range w.waiters {
		if len(woken) == 0 {
			woken <- struct{}{}
		}
	}
	w.settle()
}

func (w *wakeups) close() {
	w.shut()
	w.once.Do(func() {}) // no subscription is opened from now on
	w.work.Wait()
}
