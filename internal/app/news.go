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
)

// newsChannel is where instances tell each other which SKUs have units again: their
// names, with spaces between them.
const newsChannel = "shop:restocked"

const (
	newsPing    = 15 * time.Second // a subscription that is silent for as long is asked whether it lives; it has as long to answer
	newsAgain   = time.Second      // after a subscription was lost
	tellTimeout = time.Second
	tellAtOnce  = 1000 // SKUs in a message
)

// news tells other instances which SKUs have units again, and hears it of them. A
// message may be lost: Settings.SoldOutFor is for that.
type news struct {
	redis redis.UniversalClient
	log   *slog.Logger
	ping  time.Duration

	running sync.WaitGroup
	ctx     context.Context //nolint:containedctx // of both loops, from start to close
	stop    context.CancelFunc

	mu     sync.Mutex
	untold map[string]bool // SKUs
	wake   chan struct{}   // has room for one: there are some
}

// listener is who wants to know. *order.Service does.
type listener interface {
	Heard(skus ...string)
	Hears(on bool)
}

func newNews(client redis.UniversalClient, log *slog.Logger) *news {
	n := &news{redis: client, log: log, ping: newsPing, untold: map[string]bool{}, wake: make(chan struct{}, 1)}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// start lets l hear, and what is told go out, until close.
func (n *news) start(l listener) {
	n.running.Go(func() { n.listen(l) })
	n.running.Go(n.speak)
}

// close tells what is untold, and returns when nothing runs any more.
func (n *news) close() {
	n.stop()
	n.running.Wait()
}

// tell takes the news and returns at once: nobody waits for Redis because of it.
func (n *news) tell(skus ...string) {
	n.mu.Lock()
	for _, sku := range skus {
		n.untold[sku] = true
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default: // it is awake
	}
}

// speak publishes what there is, until close and then once more.
func (n *news) speak() {
	deaf := false // the last message did not get out; each outage is told once
	for ended := false; !ended; {
		select {
		case <-n.wake:
		case <-n.ctx.Done():
			ended = true
		}
		for some := range slices.Chunk(n.take(), tellAtOnce) {
			err := n.publish(some)
			if err != nil && !deaf {
				n.log.Warn("other instances are not told what is for sale again; they notice by themselves, within sold-out-for", "error", err)
			}
			deaf = err != nil
		}
	}
}

// take returns what is untold: a sweep that expires a hundred orders of a SKU is
// one piece of news.
func (n *news) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	skus := slices.Collect(maps.Keys(n.untold))
	clear(n.untold)
	return skus
}

func (n *news) publish(skus []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(n.ctx), tellTimeout)
	defer cancel()
	return n.redis.Publish(ctx, newsChannel, strings.Join(skus, " ")).Err()
}

// listen subscribes, again whenever the subscription is lost.
func (n *news) listen(l listener) {
	deaf := false
	for n.ctx.Err() == nil {
		err := n.hear(l, func() {
			deaf = false
			l.Hears(true)
		})
		l.Hears(false)
		if n.ctx.Err() == nil && !deaf {
			n.log.Warn("it is not heard what is for sale again; what is sold out is asked for each time", "error", err)
			deaf = true
		}
		pause(n.ctx, newsAgain)
	}
}

// hear passes on what is told until the subscription fails, after it was confirmed.
func (n *news) hear(l listener, confirmed func()) error {
	subscription := n.redis.Subscribe(n.ctx, newsChannel)
	defer subscription.Close()
	defer context.AfterFunc(n.ctx, func() { _ = subscription.Close() })() // Receive does not heed ctx
	for asked := false; ; {
		message, err := subscription.ReceiveTimeout(n.ctx, n.ping)
		if silent := net.Error(nil); errors.As(err, &silent) && silent.Timeout() && !asked {
			asked = true
			if err := subscription.Ping(n.ctx); err != nil {
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
