package step

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"example.com/shop/loadtest/shopclient"
)

const (
	answerTimeout = 90 * time.Second       // of one try to buy: longer than any shop of a pair waits
	waitTimeout   = 100 * time.Second      // of each wait for a request
	retryPause    = 100 * time.Millisecond // between two tries
	pollPause     = 2 * time.Millisecond   // between two looks where the shop has nothing to wait for
)

var errTooSlow = fmt.Errorf("it took longer than %v", waitTimeout)

// request is a buyer's purchase. Where the shop says that this is safe, it is tried again with the same key.
type request struct {
	actor    string
	shop     *shopclient.Client
	purchase shopclient.Purchase
	retryFor time.Duration // since the first try
	log      *journal

	tries    atomic.Int32
	resumed  atomic.Bool
	answered chan struct{}     // closed after the last try
	answer   shopclient.Answer // of the last try; read after answered
	err      error             // of the last try: no answer

	tapes map[int]shopclient.Tape // by try, from 1: what the shop recorded, as far as look has seen it
}

// run tries until the answer is final.
func (r *request) run(ctx context.Context) {
	defer close(r.answered)
	began, p := time.Now(), r.purchase
	for {
		p.Tape = r.tape(int(r.tries.Add(1)))
		r.log.add(r.actor, HTTP, "POST /v1/orders")
		r.answer, r.err = r.shop.Buy(ctx, p)
		r.log.add(r.actor, HTTP, answerText(r.answer, r.err))
		if r.err != nil || !r.answer.Problem.RetrySafe || time.Since(began) >= r.retryFor {
			return
		}
		if r.resumed.Load() {
			p.Steps = false // a buyer is stopped once
		}
		sleep(ctx, retryPause)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func answerText(a shopclient.Answer, err error) string {
	switch {
	case err != nil:
		return "no answer: the connection broke"
	case a.OrderID != "":
		return fmt.Sprintf("%d: order placed", a.Status)
	default:
		return fmt.Sprintf("%d: %s", a.Status, strings.ToLower(a.Problem.Title))
	}
}

// tape is the name of a try's recording.
func (r *request) tape(try int) string { return fmt.Sprintf("%s-%d", r.purchase.Key, try) }

// look returns how far the request has come. One goroutine at a time may call it.
func (r *request) look(ctx context.Context) (now progress) {
	select {
	case <-r.answered:
		now.done = true
	default:
	}
	for try := 1; try <= int(r.tries.Load()); try++ {
		if tape, err := r.shop.Tape(ctx, r.tape(try), 0); err == nil { // a killed process has none
			r.tapes[try] = tape
		}
		now.events = append(now.events, r.tapes[try].Events...)
		now.next = r.tapes[try].Next
	}
	return now
}

// until waits for a condition on what the request has done. The last answer ends the wait, too, with an errMissed.
func (r *request) until(ctx context.Context, what string, is func(progress) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errTooSlow)
	defer cancel()
	for {
		now := r.look(ctx)
		switch {
		case is(now):
			return nil
		case now.done:
			return fmt.Errorf("%s %w it %s: %s", r.actor, errMissed, what, answerText(r.answer, r.err))
		case ctx.Err() != nil:
			return fmt.Errorf("wait until %s %s: %w", r.actor, what, context.Cause(ctx))
		}
		if !r.awaitChange(ctx) {
			sleep(ctx, pollPause)
		}
	}
}

// awaitChange waits for a change in the recording of the latest try. It reports false at once if the recording has not
// begun, or has ended and the answer is on its way.
func (r *request) awaitChange(ctx context.Context) bool {
	try := int(r.tries.Load())
	if r.tapes[try].State == shopclient.TapeEnded {
		return false
	}
	_, err := r.shop.Tape(ctx, r.tape(try), r.tapes[try].Version)
	return err == nil
}

// stepTo takes steps until the next one is what is asked for, and stops there.
func (r *request) stepTo(ctx context.Context, what string, is func(progress) bool) error {
	for {
		var now progress
		err := r.until(ctx, what, func(p progress) bool { now = p; return p.next != "" })
		if err != nil {
			return err
		}
		if is(now) {
			r.log.add(r.actor, Schedule, what)
			return nil
		}
		if err := r.move(ctx, shopclient.MoveStep); err != nil {
			return err
		}
	}
}

// resume lets the try go on that has stopped.
func (r *request) resume(ctx context.Context) error {
	r.resumed.Store(true)
	r.log.add(r.actor, Schedule, "goes on")
	return r.move(ctx, shopclient.MoveResume)
}

func (r *request) move(ctx context.Context, move string) error {
	try := int(r.tries.Load())
	tape, err := r.shop.Move(ctx, move, r.tape(try))
	if err == nil {
		r.tapes[try] = tape
	}
	return err
}
