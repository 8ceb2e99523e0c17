package step

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// Play is a scenario that was played with a strategy.
type Play struct {
	Scenario string `json:"scenario"`
	Title    string `json:"title"` // of the scenario
	Strategy string `json:"strategy"`
	Promises bool   `json:"promises"` // the strategy is designed to be correct
	Passed   bool   `json:"passed"`
	Expected bool   `json:"expected"` // it ended as the strategy's description says
	Outcome  string `json:"outcome"`  // a sentence with the figures

	Stock int64 `json:"stock"` // units that were there
	Sold  int64 `json:"sold"`  // units in accepted orders

	Events []Event `json:"events"` // in order of time
	Wrong  int     `json:"wrong"`  // index of the event with which it went wrong; -1 if none did

	Why    string `json:"why"`    // a paragraph on what happened
	Remedy string `json:"remedy"` // what a right strategy does instead; empty where it passed

	Error string `json:"error,omitempty"` // why it could not be played to its end
}

// ErrNotApplicable means that a scenario cannot be played with a strategy: it makes no sense there, or a server is
// missing.
var ErrNotApplicable = errors.New("does not apply")

// errMissed means that the play did not come to the point that it is about: the machine stood still for longer than a
// lock lives.
var errMissed = errors.New("was answered before")

// Player plays, in shops that it keeps for the next play. It may be used by many goroutines at once. This program must
// call Child first thing in main, or in TestMain: instances that are to be killed are this program once more.
type Player struct {
	from shops.Instances

	mu   sync.Mutex
	idle map[pace][]*pair
}

// NewPlayer returns a Player whose shops use the servers of from, and log there. It starts them as they are needed.
func NewPlayer(from shops.Instances) *Player {
	return &Player{from: from, idle: map[pace][]*pair{}}
}

// Strategies returns the table of the shops.
func (p *Player) Strategies(ctx context.Context) ([]shopclient.Strategy, error) {
	pair, err := p.take(ctx, quick)
	if err != nil {
		return nil, err
	}
	defer p.giveBack(pair)
	lab, err := pair.shop(B).Lab(ctx)
	return lab.Strategies, err
}

// Play plays the scenario of this name with the strategy. An error means that it could not be played to its end:
// ErrUnknown, ErrNotApplicable, or what was in the way; the Play has what happened by then.
func (p *Player) Play(ctx context.Context, strategy shopclient.Strategy, name string) (played Play, err error) {
	in, known := scenario(name)
	if !known {
		return Play{}, fmt.Errorf("%w: scenario %q", ErrUnknown, name)
	}
	if why := Excuse(strategy, in); why != "" {
		return Play{}, fmt.Errorf("%s %w to %s: %s", in.Name, ErrNotApplicable, strategy.Name, why)
	}
	const tries = 3 // for plays that miss their schedule
	for range tries {
		played, err = p.playOnce(ctx, strategy, in)
		if !errors.Is(err, errMissed) {
			break
		}
	}
	return played, err
}

func (p *Player) playOnce(ctx context.Context, strategy shopclient.Strategy, in Scenario) (Play, error) {
	played := Play{
		Scenario: in.Name, Title: in.Title, Strategy: strategy.Name, Promises: strategy.PromisesCorrect,
		Stock: in.stock, Wrong: -1,
	}
	pair, err := p.take(ctx, in.pace)
	if err != nil {
		return played, err
	}
	if err := play(ctx, pair, strategy, in, &played); err != nil {
		// A request may still be stopped there, and the process paused.
		return played, errors.Join(err, pair.kill(), pair.close(context.WithoutCancel(ctx)))
	}
	p.giveBack(pair)
	return played, nil
}

// take returns a pair that no play uses.
func (p *Player) take(ctx context.Context, want pace) (*pair, error) {
	p.mu.Lock()
	if free := p.idle[want]; len(free) > 0 {
		defer p.mu.Unlock()
		p.idle[want] = free[:len(free)-1]
		return free[len(free)-1], nil
	}
	p.mu.Unlock()
	return openPair(ctx, p.from, want)
}

func (p *Player) giveBack(free *pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[free.pace] = append(p.idle[free.pace], free)
}

// Close ends all shops, their processes too, each within a bounded time even if ctx has none. No play may run any more.
func (p *Player) Close(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, pairs := range p.idle {
		for _, one := range pairs {
			errs = append(errs, one.close(ctx))
		}
	}
	return errors.Join(errs...)
}

// stage is one play while it lasts.
type stage struct {
	pair     *pair
	strategy shopclient.Strategy
	in       Scenario
	log      *journal
	requests []*request
	latest   map[string]*request // of each buyer
	running  sync.WaitGroup
}

// play follows the schedule in a pair of shops, waits for all answers and judges.
func play(ctx context.Context, pair *pair, strategy shopclient.Strategy, in Scenario, played *Play) error {
	if err := pair.revive(ctx); err != nil {
		return err
	}
	sku := "mug-" + strings.ToLower(rand.Text()[:8])
	s := &stage{
		pair: pair, strategy: strategy, in: in, log: &journal{began: time.Now(), sku: sku}, latest: map[string]*request{},
	}
	if err := pair.shop(B).Create(ctx, sku, in.stock); err != nil {
		return err
	}
	err := s.follow(ctx)
	played.Events = s.log.sorted()
	if err != nil {
		return err
	}
	return s.judge(ctx, played)
}

// follow makes the moves of the schedule and waits for all answers. It leaves no request running, and all that was
// recorded in the log.
func (s *stage) follow(ctx context.Context) error {
	moving, cancel := context.WithCancel(ctx)
	defer cancel()
	err := s.move(moving)
	cancel()
	s.running.Wait()
	if err != nil {
		ctx = moving // nothing more is asked: a process may be paused
	}
	for _, r := range s.requests {
		now := r.look(ctx) // once more: a lock may be released after the answer
		s.log.addTape(r.actor, now.events)
		if err == nil && slices.ContainsFunc(now.events, fileLocked) {
			err = fmt.Errorf("it %w any other instance could write: a process was paused while one of its jobs wrote to SQLite's file", errMissed)
		}
	}
	return err
}

// move makes the moves and waits for the answers, up to the first error.
func (s *stage) move(ctx context.Context) error {
	for _, next := range s.in.schedule {
		if err := next(ctx, s); err != nil {
			return err
		}
	}
	for _, r := range s.requests {
		if err := r.until(ctx, "has an answer", done); err != nil {
			return err
		}
	}
	return nil
}

func fileLocked(e shopclient.TapeEvent) bool { return strings.Contains(e.Answer, "SQLITE_BUSY") }

// stopOf is where A stops: at the mistake, or else at the usual point.
func (s *stage) stopOf(usual string) string {
	m, _ := MistakeOf(s.strategy.Name)
	switch {
	case m.Scenario == s.in.Name && m.StopAt != "":
		return m.StopAt
	case s.strategy.Take == "for-update" && usual == hasRead:
		return hasLockedRow
	}
	return usual
}

// order lets a buyer ask for one unit: A of instance 1, B of instance 2.
func (s *stage) order(ctx context.Context, actor string, steps bool) *request {
	key := fmt.Sprintf("%s-%d", s.log.sku, len(s.requests)+1)
	r := &request{
		actor: actor, shop: s.pair.shop(actor), log: s.log, answered: make(chan struct{}), tapes: map[int]shopclient.Tape{},
		retryFor: s.in.pace.wait * 3 / 2, // enough for two tries where a lock never comes
		purchase: shopclient.Purchase{
			Buyer: "buyer-" + actor, Key: key, Lines: []shopclient.Line{{SKU: s.log.sku, Units: 1}},
			Strategy: s.strategy.Name, Steps: steps,
		},
	}
	s.requests, s.latest[actor] = append(s.requests, r), r
	s.running.Go(func() { r.run(ctx) })
	return r
}

// judge compares the answers with the shop's audit, and says how it ended.
func (s *stage) judge(ctx context.Context, p *Play) error {
	audit, err := s.pair.shop(B).Audit(ctx, s.log.sku)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	p.Sold = audit.Books.OrderedUnits
	var placed int64
	var answers, disagree []string
	for i, r := range s.requests {
		buyer := r.actor
		if i > 1 {
			buyer += " again"
		}
		answers = append(answers, buyer+": "+answerText(r.answer, r.err))
		if r.answer.OrderID != "" {
			placed++
		}
	}
	if audit.Books.Orders < placed {
		disagree = append(disagree, fmt.Sprintf("buyers hold %d orders, the books count %d", placed, audit.Books.Orders))
	}
	for _, d := range audit.Differences {
		disagree = append(disagree, d.Invariant+" "+d.Detail)
	}
	units := fmt.Sprintf("%d of %d units sold", p.Sold, p.Stock)
	if p.Stock == 1 {
		units = fmt.Sprintf("%d sold of 1 unit", p.Sold)
	}
	switch {
	case p.Sold > p.Stock:
		units += fmt.Sprintf(", %d too many", p.Sold-p.Stock)
	case len(disagree) > 0:
		units += ", and the books disagree: " + strings.Join(disagree, "; ")
	case p.Sold < p.Stock: // each buyer wants what is left
		units += fmt.Sprintf(": B waited %v in vain for a lock with a TTL of %v", 2*s.in.pace.wait, s.in.pace.ttl)
	default:
		p.Passed = true
		p.Why = "No unit was sold twice, and no buyer was turned away while one was left."
	}
	p.Outcome = units + ". " + strings.Join(answers, "; ") + "."
	if !p.Passed {
		p.Wrong, p.Why, p.Remedy = explain(s.strategy.Name, s.in, p.Events)
	}
	// A wrong strategy may fail in other scenarios than that of its mistake: that is shown and not judged.
	p.Expected = p.Passed == p.Promises || !p.Promises && !fails(s.strategy.Name, s.in.Name)
	return nil
}
