package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/shop/loadtest/shopclient"
)

const (
	// answering bounds one try to buy: longer than any shop of a pair waits.
	answering = 90 * time.Second

	// again is how long a buyer waits before the next try.
	again = 100 * time.Millisecond

	// bound of each wait of the lab for a request.
	bound = 100 * time.Second
)

// request is a buyer's purchase, asked for again with the same key where the shop
// says that this is safe, for as long as the buyer's patience lasts.
type request struct {
	actor    string
	shop     *shopclient.Client
	purchase shopclient.Purchase
	patience time.Duration
	log      *journal
	done     chan struct{} // closed with the last answer

	mu    sync.Mutex
	tapes []*recorded // one for each try
	last  shopclient.Answer
	err   error // of the last try: no answer
}

// recorded is the tape of one try, as far as it is known here.
type recorded struct {
	name  string
	seen  shopclient.Tape
	final bool // it was asked for after its end
}

func (r *request) run(ctx context.Context) {
	defer close(r.done)
	began := time.Now()
	for try := 1; ; try++ {
		p := r.purchase
		p.Tape = fmt.Sprintf("%s-%d", r.purchase.Tape, try)
		if try > 1 {
			p.Stop = ""
		}
		r.mu.Lock()
		r.tapes = append(r.tapes, &recorded{name: p.Tape})
		r.mu.Unlock()
		r.log.add(r.actor, HTTP, "POST /v1/orders")
		answer, err := r.shop.Buy(ctx, p)
		r.log.add(r.actor, HTTP, answerText(answer, err))
		r.mu.Lock()
		r.last, r.err = answer, err
		r.mu.Unlock()
		if err != nil || !answer.Problem.RetrySafe || time.Since(began) > r.patience {
			return
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return
		}
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

// until waits for a condition on what the request has done. Its last answer ends
// the wait, too: whether that was wanted, the condition tells.
func (r *request) until(ctx context.Context, what string, is func(progress) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, errTooSlow)
	defer cancel()
	for {
		now, err := r.look(ctx)
		if err != nil {
			return fmt.Errorf("wait until %s %s: %w", r.actor, what, err)
		}
		if is(now) {
			return nil
		}
		if now.done {
			return fmt.Errorf("%s %w it %s: %s", r.actor, errMissed, what, answerText(r.outcome()))
		}
	}
}

// errMissed means that the play did not come to the point that it is about: the
// machine stood still for longer than a lock lives.
var errMissed = errors.New("was answered before")

var errTooSlow = fmt.Errorf("it took longer than %v", bound)

// progress is how far a request has come, in all its tries.
type progress struct {
	events []shopclient.TapeEvent
	done   bool
}

// look waits for news of the latest try.
func (r *request) look(ctx context.Context) (progress, error) {
	tapes := r.tries()
	select {
	case <-r.done:
		for _, t := range tapes {
			r.ask(ctx, t, 0)
		}
		return progress{r.events(), true}, nil
	case <-ctx.Done():
		return progress{}, context.Cause(ctx)
	default:
	}
	if n := len(tapes); n > 0 {
		r.news(ctx, tapes[n-1])
		for _, t := range tapes[:n-1] {
			r.ask(ctx, t, 0)
		}
	} else {
		time.Sleep(soon)
	}
	return progress{events: r.events()}, nil
}

// soon is for as long as the shop has not begun to record.
const soon = 2 * time.Millisecond

// news waits until a tape has changed or the request was answered.
func (r *request) news(ctx context.Context, tape *recorded) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-r.done:
			cancel()
		case <-over:
		}
	}()
	if r.ask(ctx, tape, tape.seen.Version) {
		return
	}
	// Nothing is recorded yet, or the process was killed: then the request ends, too.
	select {
	case <-ctx.Done():
	case <-time.After(soon):
	}
}

// ask keeps what a tape has, and reports whether there was an answer. Only the lab
// asks, one question at a time.
func (r *request) ask(ctx context.Context, tape *recorded, version int) bool {
	if version == 0 && tape.seen.State == shopclient.TapeEnded && tape.final {
		return true
	}
	seen, err := r.shop.Tape(ctx, tape.name, version)
	if err != nil {
		return false
	}
	tape.final = version == 0 && seen.State == shopclient.TapeEnded
	tape.seen = seen
	return true
}

func (r *request) tries() []*recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tapes)
}

func (r *request) events() []shopclient.TapeEvent {
	var events []shopclient.TapeEvent
	for _, t := range r.tries() {
		events = append(events, t.seen.Events...)
	}
	return events
}

// resume lets the first try go on, which is the one that was stopped.
func (r *request) resume(ctx context.Context) error {
	_, err := r.shop.Resume(ctx, r.purchase.Tape+"-1")
	return err
}

func (r *request) outcome() (shopclient.Answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, r.err
}
