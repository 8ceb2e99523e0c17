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

// fates are the fates of the first, second, ... statement of a kind; later statements pass.
type fates []testserver.Fate

// judge returns a function that decides the fate of each COMMIT of an order, and of each statement that claims its key.
// Each transaction begins with a claim, also a transaction that asks for the outcome of the last. beforeClaim is called
// with 0, 1, ... before each claim.
func judge(commits, claims fates, beforeClaim func(n int)) func(statement string) testserver.Fate {
	var mu sync.Mutex
	var committed, claimed int
	return func(statement string) testserver.Fate {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case statement == "COMMIT" && committed < len(commits):
			committed++
			return commits[committed-1]
		case strings.HasPrefix(statement, "INSERT INTO `idempotency_keys`"):
			beforeClaim(claimed)
			claimed++
			if claimed <= len(claims) {
				return claims[claimed-1]
			}
		}
		return testserver.Pass
	}
}

// "If the answer to the COMMIT is lost, InTx finds out on another connection whether the COMMIT was done": each order
// has exactly one outcome, and the buyer's retry gets it.
func TestService_Place_ambiguousCommit(t *testing.T) {
	t.Parallel()
	const pass, drop, mute, hang = testserver.Pass, testserver.Drop, testserver.Mute, testserver.Hang
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "innodb_lock_wait_timeout=1&wait_timeout=60")
		b := setup(t, database.Migrated(t))
		for name, c := range map[string]struct {
			commits, claims fates
			noticed         int   // claim before which the server notices that it was hung up on, from 0
			cancelled       bool  // the request ends at its COMMIT
			want            error // the buyer's first answer, nil: placed
			cause           string
			there           bool // so that the retry is a replay
		}{
			"done":                {commits: fates{mute}, there: true},
			"not done":            {commits: fates{drop}, there: true},
			"not done, then done": {commits: fates{drop, mute}, there: true},
			"never done":          {commits: fates{drop, drop, drop}, want: order.ErrBusy, cause: "3 commits were rolled back, the last after: outcome of the commit is unknown: invalid connection"},
			"lost before it":      {claims: fates{mute}, there: true},
			"lost twice":          {claims: fates{mute, mute}, want: order.ErrBusy},
			"asking is lost":      {commits: fates{mute}, claims: fates{pass, drop, mute}, there: true},
			"asking is in vain": {
				commits: fates{mute}, claims: append(fates{pass}, slices.Repeat(fates{drop}, 10)...),
				want: order.ErrUnknownOutcome, there: true,
			},
			"not noticed at once":  {commits: fates{hang}, noticed: 1, there: true},
			"not noticed for long": {commits: fates{hang}, want: order.ErrUnknownOutcome},
			// "The COMMIT ignores the cancellation of ctx", and so does the question for its outcome.
			"done, cancelled":     {commits: fates{mute}, cancelled: true, there: true},
			"not done, cancelled": {commits: fates{drop}, cancelled: true, want: context.Canceled},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				sku := "mug-" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
				b.supply(t, sku, 5)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var through storetest.Database
				judged := judge(c.commits, c.claims, func(claim int) {
					if c.noticed > 0 && claim == c.noticed {
						through.Link.LetGo()
					}
				})
				through = database.Through(t, func(statement string) testserver.Fate {
					if c.cancelled && statement == "COMMIT" {
						cancel()
					}
					return judged(statement)
				})
				cut := setup(t, through.Open(t)) // by redis: one order, one transaction
				r := buy(name, sku, 2)
				o, replayed, err := cut.Place(ctx, r)
				if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.cause) || replayed || errors.Is(err, order.ErrUnknownOutcome) && errors.Is(err, order.ErrBusy) {
					t.Fatalf("got replayed %v, %v, want %v alone, with %q", replayed, err, c.want, c.cause)
				}
				through.Link.LetGo()
				again, replayed, err := cut.Place(t.Context(), r)
				// A transaction that was cut off holds its rows until the server has noticed.
				for end := time.Now().Add(time.Minute); time.Now().Before(end) && errors.Is(err, order.ErrBusy); {
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

// An order is not placed if another order has taken its key between the question and the second run.
func TestService_Place_ambiguousTwin(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "")
		b := setup(t, database.Migrated(t)).by("conditional") // no lock, so that the twin can come in between
		b.supply(t, "mug", 5)
		r := buy("key", "mug", 2)
		var twin order.Order
		judged := judge(fates{testserver.Drop}, nil, func(claim int) {
			if claim != 2 { // 0 is the first run, 1 asks
				return
			}
			var err error
			if twin, _, err = b.Place(t.Context(), r); err != nil {
				t.Errorf("twin: %v", err)
			}
		})
		cut := setup(t, database.Through(t, judged).Open(t)).by("conditional")
		o, replayed, err := cut.Place(t.Context(), r)
		if err != nil || !replayed || o.ID != twin.ID {
			t.Errorf("got order %q, replayed %v, %v; want the twin's %q", o.ID, replayed, err, twin.ID)
		}
		b.wantEnd(t, twin, order.Pending, "mug", stock.Level{Supplied: 5, Available: 3, Reserved: 2})
	})
}

// The same for the end of an order: the payment is asked for again, and does not take its own key for another's.
// Whatever the asking says, "nothing was changed" is no answer: the unanswered commit may have been done.
func TestService_Pay_unanswered(t *testing.T) {
	t.Parallel()
	lost := fmt.Errorf("%w: connection lost", order.ErrUnknownOutcome)
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		b := setup(t, db)
		for name, c := range map[string]struct {
			before  bool    // it is paid before
			refused bool    // the first commit is not done
			answers []error // the last one is for all that follow; nil: the real one
			want    error   // without a key; with one, the key on record says what was done
		}{
			"done":              {answers: []error{lost, nil}},
			"not done":          {refused: true, answers: []error{lost, nil}},
			"asking is lost":    {answers: []error{lost, lost, order.ErrBusy, nil}},
			"asking is in vain": {answers: []error{lost, order.ErrBusy}, want: order.ErrUnknownOutcome},
			"never answered":    {answers: []error{lost}, want: order.ErrUnknownOutcome},
			"paid before":       {before: true, answers: []error{lost, nil}},
		} {
			for _, key := range []string{"", "pay " + name} {
				sku := strings.ReplaceAll(name+key, " ", "-")
				b.supply(t, sku, 5)
				o := b.place(t, "place "+sku, sku, 2)
				if c.before {
					_, err := b.Pay(t.Context(), payment(o))
					wantErr(t, name, err, nil)
				}
				s := b.another(t)
				if c.refused {
					s.spy.refuseCommit = errors.New("no")
				}
				answers := slices.Clone(c.answers)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s.spy.answer = func(said error) error {
					if key == "" {
						cancel() // also for a buyer who has gone
					}
					s.spy.refuseCommit = nil
					lie := answers[0]
					if len(answers) > 1 {
						answers = answers[1:]
					}
					if lie == nil {
						return said
					}
					return lie
				}
				paid, err := s.Pay(ctx, withKey(o, key))
				want, replayed := c.want, false
				if key != "" {
					want, replayed = nil, !c.refused
				}
				if !errors.Is(err, want) || errors.Is(err, order.ErrBusy) {
					t.Errorf("%s: got %v, want %v", sku, err, want)
				}
				if err == nil && (paid.Status != order.Paid || paid.First == c.before || paid.Replayed != replayed) {
					t.Errorf("%s: got %+v, want it paid, first %v, replayed %v", sku, paid, !c.before, replayed)
				}
				b.wantEnd(t, o, order.Paid, sku, stock.Level{Supplied: 5, Available: 3, Sold: 2})
			}
		}
	})
}
