package order_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

type fates []testserver.Fate

// scene is what becomes of the first, second, ... statement of a kind that an order sends; those beyond pass. Every
// transaction claims the order's key first, also one that asks what the last one came to.
type scene struct {
	commits, claims fates
	before          func(claim int) // is called before the first (0), second, ... claim passes

	mu      sync.Mutex
	commit  int
	claimed int
}

func (s *scene) judge(statement string) testserver.Fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case statement == "COMMIT":
		s.commit++
		return s.commits.at(s.commit)
	case strings.HasPrefix(statement, "INSERT INTO `idempotency_keys`"):
		s.claimed++
		if s.before != nil {
			s.before(s.claimed - 1)
		}
		return s.claims.at(s.claimed)
	}
	return testserver.Pass
}

// at returns the fate of the nth statement, from 1 on.
func (of fates) at(n int) testserver.Fate {
	if n > len(of) {
		return testserver.Pass
	}
	return of[n-1]
}

// "If the answer to the COMMIT is lost, InTx writes the row of an idempotency key with which the transaction places an
// order on another connection to find out whether it was done": each order ends as exactly one outcome, and the buyer's
// retry gets it.
func TestService_Place_ambiguousCommit(t *testing.T) {
	t.Parallel()
	const pass, drop, mute, hang = testserver.Pass, testserver.Drop, testserver.Mute, testserver.Hang
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "innodb_lock_wait_timeout=1")
		b := setup(t, database.Migrated(t))
		for name, c := range map[string]struct {
			commits, claims fates
			noticed         int   // claim before which the server notices that it was hung up on, from 0
			cancelled       bool  // the request ends at its COMMIT
			want            error // the buyer's first answer, nil: placed
			there           bool  // so that the retry is a replay
		}{
			"done":                {commits: fates{mute}, there: true},
			"not done":            {commits: fates{drop}, there: true},
			"not done, then done": {commits: fates{drop, mute}, there: true},
			"never done":          {commits: fates{drop, drop, drop}, want: order.ErrBusy},
			"lost before it":      {claims: fates{mute}, want: order.ErrBusy},
			"asking is lost":      {commits: fates{mute}, claims: fates{pass, drop, mute}, there: true},
			"asking is in vain": {
				commits: fates{mute}, claims: fates{pass, drop, drop, drop, drop, drop},
				want: order.ErrUnknownOutcome, there: true,
			},
			"not noticed at once":  {commits: fates{hang}, noticed: 1, there: true},
			"not noticed for long": {commits: fates{hang}, want: order.ErrUnknownOutcome},
			// "The COMMIT does not heed the cancellation of ctx", nor does the question what became of it.
			"done, cancelled":     {commits: fates{mute}, cancelled: true, there: true},
			"not done, cancelled": {commits: fates{drop}, cancelled: true, want: context.Canceled},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				sku := "mug-" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
				b.supply(t, sku, 5)
				s := &scene{commits: c.commits, claims: c.claims}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				through := database.Through(t, func(statement string) testserver.Fate {
					if c.cancelled && statement == "COMMIT" {
						cancel()
					}
					return s.judge(statement)
				})
				s.before = func(claim int) {
					if c.noticed > 0 && claim == c.noticed {
						through.Link.LetGo()
					}
				}
				cut := setup(t, through.Open(t)) // by redis: one order, one transaction
				r := buy(name, sku, 2)
				o, replayed, err := cut.Place(ctx, r)
				if !errors.Is(err, c.want) || replayed || errors.Is(err, order.ErrUnknownOutcome) && errors.Is(err, order.ErrBusy) {
					t.Fatalf("got replayed %v, %v, want %v alone", replayed, err, c.want)
				}
				through.Link.LetGo()
				again, replayed, err := cut.Place(t.Context(), r)
				// A transaction that was cut off holds its rows until the server has noticed.
				for end := time.Now().Add(time.Minute); time.Now().Before(end) &&
					(errors.Is(err, order.ErrBusy) || errors.Is(err, order.ErrInProgress)); {
					again, replayed, err = cut.Place(t.Context(), r)
				}
				if err != nil || replayed != c.there || c.want == nil && again.ID != o.ID {
					t.Errorf("retry: got order %s, replayed %v, %v, want replayed %v of %s", again.ID, replayed, err, c.there, o.ID)
				}
				b.wantEnd(t, again, order.Pending, sku, stock.Level{Supplied: 5, Available: 3, Reserved: 2})
			})
		}
	})
}

// If another order has the key meanwhile, this one is not placed: it comes in between the question and the second run.
func TestService_Place_ambiguousTwin(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "")
		b := setup(t, database.Migrated(t)).by("conditional") // no lock, so that the twin can come in between
		b.supply(t, "mug", 5)
		r := buy("key", "mug", 2)
		var twin order.Order
		s := &scene{commits: fates{testserver.Drop}}
		s.before = func(claim int) {
			if claim != 2 { // 0 is the first run, 1 asks
				return
			}
			var err error
			if twin, _, err = b.Place(t.Context(), r); err != nil {
				t.Errorf("twin: %v", err)
			}
		}
		cut := setup(t, database.Through(t, s.judge).Open(t)).by("conditional")
		o, replayed, err := cut.Place(t.Context(), r)
		if err != nil || !replayed || o.ID != twin.ID {
			t.Errorf("got order %q, replayed %v, %v; want the twin's %q", o.ID, replayed, err, twin.ID)
		}
		b.wantEnd(t, twin, order.Pending, "mug", stock.Level{Supplied: 5, Available: 3, Reserved: 2})
	})
}

// The same for the end of an order. Whatever the asking says, "nothing was changed" is no answer: the unanswered commit
// may have been done.
func TestService_Pay_unanswered(t *testing.T) {
	t.Parallel()
	lost := fmt.Errorf("%w: connection lost", order.ErrUnknownOutcome)
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		for name, c := range map[string]struct {
			refused bool    // the first commit is not done
			answers []error // the last one is for all that follow; nil: the real one
			want    error
		}{
			"done":              {answers: []error{lost, nil}},
			"not done":          {refused: true, answers: []error{lost, nil}},
			"asking is lost":    {answers: []error{lost, lost, order.ErrBusy, nil}},
			"asking is in vain": {answers: []error{lost, order.ErrBusy}, want: order.ErrUnknownOutcome},
			"never answered":    {answers: []error{lost}, want: order.ErrUnknownOutcome},
		} {
			sku := strings.ReplaceAll(name, " ", "-")
			b.supply(t, sku, 5)
			o := b.place(t, name, sku, 2)
			s := b.another(t)
			g := s.spy
			if c.refused {
				g.refuseCommit = errors.New("no")
			}
			answers := slices.Clone(c.answers)
			ctx, cancel := context.WithCancel(t.Context())
			g.answer = func(said error) error {
				cancel() // also for a buyer who has gone
				g.refuseCommit = nil
				lie := answers[0]
				if len(answers) > 1 {
					answers = answers[1:]
				}
				if lie == nil {
					return said
				}
				return lie
			}
			paid, err := s.Pay(ctx, payment(o))
			if !errors.Is(err, c.want) || err == nil && paid.Status != order.Paid {
				t.Errorf("%s: got %+v, %v, want %v", name, paid, err, c.want)
			}
			if errors.Is(err, order.ErrBusy) {
				t.Errorf("%s: got %v, which says that nothing was changed", name, err)
			}
			b.wantEnd(t, o, order.Paid, sku, stock.Level{Supplied: 5, Available: 3, Sold: 2})
		}
	})
}
