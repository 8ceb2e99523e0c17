package app

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/observe"
)

// restockChannel is where instances publish which SKUs have units again: their names, with spaces between them.
const restockChannel = "shop:restocked"

// broadcast tells other instances which SKUs have units again, and passes on what they publish. A message may be
// lost: Settings.SoldOutFor bounds for how long that matters.
type broadcast struct {
	redis redis.UniversalClient
	log   *slog.Logger
	ping  time.Duration // a subscription that is silent for so long is asked whether it lives

	running sync.WaitGroup
	stop    context.CancelFunc

	mu      sync.Mutex
	waiting map[string]bool // SKUs that are not yet published
	wake    chan struct{}   // has room for one element: there are some
}

// listener is notified. *lane.Lanes is one.
type listener interface {
	Heard(skus ...string) // SKUs have units again
	Hears(on bool)        // whether the subscription works
}

func newBroadcast(client redis.UniversalClient, log *slog.Logger) *broadcast {
	return &broadcast{redis: client, log: log, ping: 15 * time.Second, waiting: map[string]bool{}, wake: make(chan struct{}, 1)}
}

// start listens and publishes until close.
func (b *broadcast) start(l listener) {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.running.Go(func() { b.listen(ctx, l) })
	b.running.Go(func() { b.speak(ctx) })
}

// close publishes what is left, and returns when nothing runs any more.
func (b *broadcast) close() {
	if b.stop != nil {
		b.stop()
		b.running.Wait()
	}
}

// publish returns at once: orders do not wait for Redis because of it.
func (b *broadcast) publish(skus ...string) {
	b.mu.Lock()
	for _, sku := range skus {
		b.waiting[sku] = true // a sweep that expires a hundred orders of a SKU makes one message
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default: // it is awake
	}
}

func (b *broadcast) speak(ctx context.Context) {
	outage := observe.Outage{Log: b.log, Message: "restocks are not published; other instances notice them by themselves, within sold-out-for"}
	for ctx.Err() == nil {
		select {
		case <-b.wake:
		case <-ctx.Done(): // and once more
		}
		b.mu.Lock()
		skus := slices.Collect(maps.Keys(b.waiting))
		clear(b.waiting)
		b.mu.Unlock()
		for some := range slices.Chunk(skus, 1000) {
			sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			err := b.redis.Publish(sending, restockChannel, strings.Join(some, " ")).Err()
			cancel()
			outage.Note(ctx, err)
		}
	}
}

// listen subscribes, again a second after the subscription was lost.
func (b *broadcast) listen(ctx context.Context, l listener) {
	outage := observe.Outage{Log: b.log, Message: "restocks of other instances are not heard; what is sold out is looked up each time"}
	for {
		err := b.receive(ctx, l, func() {
			outage.Note(ctx, nil)
			l.Hears(true)
		})
		l.Hears(false)
		if ctx.Err() != nil {
			return
		}
		outage.Note(ctx, err)
		pause(ctx, time.Second)
	}
}

// receive passes messages on until the subscription fails, after it was confirmed.
func (b *broadcast) receive(ctx context.Context, l listener, confirmed func()) error {
	subscription := b.redis.Subscribe(ctx, restockChannel)
	defer subscription.Close()
	defer context.AfterFunc(ctx, func() { _ = subscription.Close() })() // Receive does not heed ctx
	for asked := false; ; {
		message, err := subscription.ReceiveTimeout(ctx, b.ping)
		if silent := net.Error(nil); errors.As(err, &silent) && silent.Timeout() && !asked {
			asked = true
			if err := subscription.Ping(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		asked = false
		switch m := message.(type) {
		case *redis.Subscription:
			confirmed()
		case *redis.Message:
			l.Heard(strings.Fields(m.Payload)...)
		}
	}
}
