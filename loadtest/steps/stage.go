package steps

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// stage is where one play is held.
type stage struct {
	pair *pair
	how  Strategy
	sku  string

	began    time.Time
	log      journal
	requests []*request
	killed   bool // A's process
}

func newStage(p *pair, how Strategy) *stage {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	sku := "mug-" + hex.EncodeToString(b[:])
	return &stage{pair: p, how: how, sku: sku, began: time.Now(), log: journal{sku: sku}}
}

// order lets a buyer ask for one unit, at instance 1 if that is A, else 2.
func (s *stage) order(ctx context.Context, actor, stop string) *request {
	instance, n := 1, len(s.requests)+1
	if actor == B {
		instance = 2
	}
	name := fmt.Sprintf("%s-%d", s.sku, n)
	r := &request{
		actor: actor, shop: s.pair.shop(instance), log: &s.log, done: make(chan struct{}),
		patience: patience(s.pair.where.Wait),
		purchase: shopclient.Purchase{
			Buyer: "buyer-" + actor, Key: name, Lines: []shopclient.Line{{SKU: s.sku, Units: 1}}, Strategy: s.how.Name, Tape: name, Stop: stop,
		},
	}
	s.requests = append(s.requests, r)
	go r.run(ctx)
	return r
}

// patience lets a buyer try twice who is kept waiting for a lock.
func patience(wait time.Duration) time.Duration { return wait * 3 / 2 }

// pause stops A's process.
func (s *stage) pause() error {
	s.log.add(A, Schedule, "process paused (SIGSTOP)")
	return s.pair.first.pause()
}

// unpause continues it.
func (s *stage) unpause() error {
	s.log.add(A, Schedule, "process goes on (SIGCONT)")
	return s.pair.first.unpause()
}

// kill ends it.
func (s *stage) kill() error {
	s.killed = true
	s.log.add(A, Schedule, "process killed (SIGKILL)")
	return s.pair.kill()
}

// finish waits for the answers to all requests.
func (s *stage) finish(ctx context.Context) error {
	for _, r := range s.requests {
		if err := r.until(ctx, "has an answer", func(p progress) bool { return p.done }); err != nil {
			return err
		}
	}
	return nil
}

// events are those of the lab and of all requests, at the end: it is called once.
func (s *stage) events() []Event {
	for _, r := range s.requests {
		for _, t := range r.tries() {
			s.log.addTape(r.actor, t.seen)
		}
	}
	return s.log.told(s.began)
}
