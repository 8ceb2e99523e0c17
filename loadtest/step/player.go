package step

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/shop/internal/lab"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// Position is the outcome of a schedule, as far as it was played.
type Position struct {
	Schedule string   `json:"schedule"` // the name of what was done
	Acts     []string `json:"acts"`     // what was done, one by one
	Strategy string   `json:"strategy"`
	Designed bool     `json:"designed"`  // the strategy is designed to be correct
	LockName string   `json:"lock_name"` // of what the strategy locks with, as in shopclient.Strategy; empty if it has no lock
	Units    int64    `json:"units"`     // that were there

	Buyers []Buyer  `json:"buyers"`
	Lines  []string `json:"lines"` // of the source, at which the buyers have stood
	Next   []string `json:"next"`  // acts that can be done now; none when it is over
	Stock  Stock    `json:"stock"`
	Lock   *Lock    `json:"lock,omitempty"` // nil if there is none, or its store does not name its holder
	Sold   int64    `json:"sold"`           // units in orders
	Events []Event  `json:"events"`         // in order of time
	Wrong  int      `json:"wrong"`          // index of the event with which it went wrong; -1 if none did
	Saved  int      `json:"saved"`          // index of the event with which a lesson's remedy prevents that; -1 if none does

	Over   bool   `json:"over"`   // no buyer can go on
	Passed bool   `json:"passed"` // it is over, no unit was sold twice, no buyer waits for ever, and no unit is left for a living one
	Why    string `json:"why"`    // a paragraph on what happened, once it is over
	Remedy string `json:"remedy"` // what a right strategy does instead, where it failed
}

// Buyer is how far a buyer has come.
type Buyer struct {
	Name     string `json:"name"`
	Instance int    `json:"instance"` // of the shop, from 1
	State    string `json:"state"`
	Next     string `json:"next"`     // its next step: sql, redis, lock or release, and a text
	Line     string `json:"line"`     // of the source, where it stands or waits, such as internal/order/strategy/none.go:27
	Holds    bool   `json:"holds"`    // a lock, as it believes
	Mistaken bool   `json:"mistaken"` // it has lost the lock that it believes to hold
	Read     *int64 `json:"read,omitempty"`
	Answer   string `json:"answer"` // empty while there is none
}

// States of a Buyer.
const (
	Ready = "ready" // it can take its next step
	Waits = "waits" // for another
	Done  = "done"
	Died  = "died"
)

// Stock is the row of the stock, as any reader of the database sees it.
type Stock struct {
	Available int64 `json:"available"`
	Reserved  int64 `json:"reserved"`
	Fence     int64 `json:"fence,string"` // above what a JavaScript number can hold exactly
}

// Lock is the lock as its store has it, whatever the buyers believe.
type Lock struct {
	Holders []string `json:"holders"` // A, B or C; none if it is free, or the store has no owner
	lab.LockState
}

// isOwner reports whether a command names an owner of the lock.
func (l *Lock) isOwner(command string) bool {
	return slices.ContainsFunc(strings.Split(l.Owner, ", "), func(owner string) bool {
		return owner != "" && strings.Contains(command, " "+owner)
	})
}

// isOthers reports whether the lock is free, or another buyer's.
func (l *Lock) isOthers(name string) bool {
	return l.Owner == "" || len(l.Holders) > 0 && !slices.Contains(l.Holders, name)
}

// Player plays, in shops that it keeps for the next schedule. It may be used by many goroutines at once. It plays at
// most eight schedules at a time, since the shops of each take some 70 file descriptors.
type Player struct {
	on      shops.Servers
	conns   *http.Client
	playing chan struct{} // has an element for each schedule

	mu   sync.Mutex
	idle []*instances
}

// kind describes the shops that a schedule needs.
type kind struct {
	buyers int           // each at an instance of its own
	ttl    time.Duration // of locks
}

// NewPlayer returns a Player whose shops use these servers. It starts them as they are needed.
func NewPlayer(on shops.Servers) *Player {
	return &Player{on: on, conns: shopclient.NewConnections(maxBuyers, answerTimeout), playing: make(chan struct{}, 2*parallel)}
}

// Close ends all shops. Nothing may be played any more.
func (p *Player) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns.CloseIdleConnections()
	var errs []error
	for _, s := range p.idle {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// instances are the instances of one shop, on the same stores. They play one schedule at a time.
type instances struct {
	*shops.Set
	kind
	clients   []*shopclient.Client
	oneWriter bool // the database is a SQLite file
}

const (
	patientTTL = 10 * time.Second // of locks, which so run out only where the schedule says so
	quickTTL   = 2 * time.Second  // of locks, in a schedule that is about time
)

func (p *Player) open(ctx context.Context, k kind) (*instances, error) {
	set, err := shops.Instances{Count: k.buyers, Servers: p.on, LockTTL: k.ttl}.Open(ctx)
	if err != nil {
		return nil, err
	}
	s := &instances{Set: set, kind: k, oneWriter: p.on.MySQL == ""}
	for _, url := range set.URLs {
		s.clients = append(s.clients, shopclient.New(url, p.conns))
	}
	return s, nil
}

// borrow calls do with shops that nothing else uses. They are closed after an error that is no
// ErrSchedule, for a request may be stopped there.
func (p *Player) borrow(ctx context.Context, k kind, do func(*instances) error) (err error) {
	select {
	case p.playing <- struct{}{}:
		defer func() { <-p.playing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var s *instances
	p.mu.Lock()
	if i := slices.IndexFunc(p.idle, func(s *instances) bool { return s.kind == k }); i >= 0 {
		s = p.idle[i]
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	p.mu.Unlock()
	if s == nil {
		if s, err = p.open(ctx, k); err != nil {
			return err
		}
	}
	if err = do(s); err != nil && !errors.Is(err, ErrSchedule) {
		return errors.Join(err, s.Close())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
	return err
}

// Strategies returns the shops' table of strategies.
func (p *Player) Strategies(ctx context.Context) (all []shopclient.Strategy, err error) {
	err = p.borrow(ctx, kind{2, patientTTL}, func(s *instances) error {
		about, err := s.clients[0].Lab(ctx)
		all = about.Strategies
		return err
	})
	return all, err
}

// strategy returns the strategy with this name, or an ErrSchedule.
func (p *Player) strategy(ctx context.Context, name string) (shopclient.Strategy, error) {
	all, err := p.Strategies(ctx)
	if err != nil {
		return shopclient.Strategy{}, err
	}
	found, err := lab.Find(all, name)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrSchedule, err)
	}
	return found, err
}

// Position plays a schedule as far as its name says. An ErrSchedule is about the name.
func (p *Player) Position(ctx context.Context, name string) (Position, error) {
	return p.play(ctx, name, plan{part: true})
}

// Play plays a schedule, and then each buyer to its end. The errors are the errors of Position.
func (p *Player) Play(ctx context.Context, name string) (Position, error) {
	return p.play(ctx, name, plan{})
}

// PlayLoose is Play for the schedule of another strategy: acts that do not fit this one are left out.
func (p *Player) PlayLoose(ctx context.Context, name string) (Position, error) {
	return p.play(ctx, name, plan{loose: true})
}

func (p *Player) play(ctx context.Context, name string, how plan) (Position, error) {
	all, _, err := p.keep(ctx, name, how)
	if err != nil {
		return Position{}, err
	}
	return all[len(all)-1], nil
}

// keep plays a schedule by a plan, and returns the positions that were kept, the last of which is the end.
func (p *Player) keep(ctx context.Context, name string, how plan) ([]Position, []decision, error) {
	named, acts, err := parseSchedule(name)
	if err != nil {
		return nil, nil, err
	}
	strategy, err := p.strategy(ctx, named)
	if err != nil {
		return nil, nil, err
	}
	how.Bounds, how.acts = acts.Bounds, acts.acts
	return p.walk(ctx, strategy, how)
}

// repeats is how often a schedule is tried: which of several waiters gets a lock that has run out is not determined.
const repeats = 20

func (p *Player) walk(ctx context.Context, strategy shopclient.Strategy, how plan) (all []Position, done []decision, err error) {
	needs, times := kind{how.Buyers, patientTTL}, 1
	switch {
	case slices.ContainsFunc(how.acts, func(a act) bool { return a.kind == works }):
		needs.ttl = quickTTL
	case how.Buyers > 2:
		times = repeats
	}
	err = p.borrow(ctx, needs, func(s *instances) (err error) {
		for range times {
			all, done, err = walkThrough(ctx, s, strategy, how)
			if !errors.Is(err, ErrSchedule) || errors.Is(err, errNoLock) { // nor will there be one
				break
			}
		}
		return err
	})
	return all, done, err
}
