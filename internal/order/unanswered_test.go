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
)

type fates []storetest.Fate

// scene is what becomes of the first, second, ... statement of a kind that an order sends; those beyond pass. Every
// transaction claims the order's key first, also one that asks what the last one came to.
type scene struct {
	commits, claims fates
	before          func(claim int) // is called before the first (0), second, ... claim passes

	mu      sync.Mutex
	commit  int
	claimed int
}

func (s *scene) judge(statement string) storetest.Fate {
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
	return storetest.Pass
}

// at returns the fate of the nth statement, from 1 on.
func (of fates) at(n int) storetest.Fate {
	if n > len(of) {
		return storetest.Pass
	}
	return of[n-1]
}

// "If the answer to the COMMIT is lost, InTx writes the row of placed's idempotency key on another connection to find
// out whether it was done": each order ends as exactly one outcome, and the buyer's retry gets it.
func TestService_Place_ambiguousCommit(t *testing.T) {
	t.Parallel()
	const pass, drop, mute, hang = storetest.Pass, storetest.Drop, storetest.Mute, storetest.Hang
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
				proxy := &storetest.Proxy{Judge: func(statement string) storetest.Fate {
					if c.cancelled && statement == "COMMIT" {
						cancel()
					}
					return s.judge(statement)
				}}
				s.before = func(claim int) {
					if c.noticed > 0 && claim == c.noticed {
						proxy.LetGo()
					}
				}
				cut := setup(t, database.Through(t, proxy).Open(t))
				r := buy(name, sku, 2)
				r.Strategy = "redis" // one order, one transaction
				o, replayed, err := cut.Place(ctx, r)
				if !errors.Is(err, c.want) || replayed || errors.Is(err, order.ErrUnknownOutcome) && errors.Is(err, order.ErrBusy) {
					t.Fatalf("got replayed %v, %v, want %v alone", replayed, err, c.want)
				}
				proxy.LetGo()
				again, replayed, err := cut.Place(t.Context(), r)
				// What hung holds the rows until the server has noticed.
				for end := time.Now().Add(time.Minute); slices.Contains(c.commits, hang) && time.Now().Before(end) &&
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
		b := setup(t, database.Migrated(t))
		b.supply(t, "mug", 5)
		r := buy("key", "mug", 2)
		r.Strategy = "conditional" // no lock, so that the twin can come in between
		var twin order.Order
		s := &scene{commits: fates{storetest.Drop}}
		s.before = func(claim int) {
			if claim != 2 { // 0 is the first run, 1 asks
				return
			}
			var err error
			if twin, _, err = b.Place(t.Context(), r); err != nil {
				t.Errorf("twin: %v", err)
			}
		}
		cut := setup(t, database.Through(t, &storetest.Proxy{Judge: s.judge}).Open(t))
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
<<<<<<< HEAD
=======

// 500 COMMITs that were done and 500 that were not, none of them answered, on three instances, while buyers place, pay
// and cancel: "each order ends as exactly one outcome, the buyer's retry gets it."
func TestService_ambiguousCommits(t *testing.T) {
	t.Parallel()
	const (
		ofEach = 500
		buyers = 32
		seed   = 20260304
	)
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database, locks := kind.New(t, ""), lock.NewMemory()
		shared := func(c *config) { c.backend = locks }
		m := &market{dice: rand.New(rand.NewPCG(seed, seed)), answered: map[string]order.Order{}}
		m.direct = setup(t, database.Migrated(t), shared)
		for range 3 {
			db := database.Through(t, &storetest.Proxy{Judge: m.judge}).Open(t)
			m.shops = append(m.shops, setup(t, db, shared).Service)
		}
		m.direct.supply(t, hot, 200)
		for i := range colds {
			m.direct.supply(t, cold(i), 1_000_000)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		start := time.Now()
		atOnce(buyers, func(i int) {
			dice := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := 0; !t.Failed(); n++ {
				if dropped, muted := m.cuts(); dropped >= ofEach && muted >= ofEach {
					return
				}
				m.buy(ctx, t, dice, fmt.Sprintf("buyer-%d", i), fmt.Sprintf("key-%d", n))
			}
		})
		t.Logf("%d COMMITs dropped, %d muted, %d orders, %d answers that had to be asked for again, in %v",
			m.dropped, m.muted, len(m.answered), m.retries, time.Since(start).Round(time.Millisecond))
		m.check(t)
	})
}

const (
	hot   = "hot"
	colds = 5
)

func cold(i int) string { return fmt.Sprintf("cold-%d", i) }

// market is a shop whose COMMITs are cut, and what its buyers were answered.
type market struct {
	shops  []*order.Service
	direct *bundle // an instance of the same shop whose COMMITs are not

	mu       sync.Mutex
	dice     *rand.Rand
	dropped  int // COMMITs
	muted    int
	answered map[string]order.Order // by id, with the status that it ended in
	retries  int
}

// judge lets half of the COMMITs go without an answer.
func (m *market) judge(statement string) storetest.Fate {
	m.mu.Lock()
	defer m.mu.Unlock()
	if statement == "COMMIT" {
		switch m.dice.IntN(4) {
		case 0:
			m.dropped++
			return storetest.Drop
		case 1:
			m.muted++
			return storetest.Mute
		}
	}
	return storetest.Pass
}

func (m *market) cuts() (dropped, muted int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dropped, m.muted
}

// buy is a buyer's purchase, until each of its requests has a definite answer.
func (m *market) buy(ctx context.Context, t *testing.T, dice *rand.Rand, buyer, key string) {
	sku := cold(dice.IntN(colds))
	if dice.IntN(4) == 0 {
		sku = hot
	}
	r := buy(key, sku, 1+dice.Int64N(3))
	r.Buyer = buyer
	r.Strategy = []string{"redis", "lanes", "conditional"}[dice.IntN(3)]
	var o order.Order
	err := m.insist(ctx, func(s *order.Service) (err error) {
		o, _, err = s.Place(ctx, r)
		return err
	})
	if errors.Is(err, order.ErrSoldOut) && sku == hot {
		return
	}
	if err != nil {
		t.Errorf("place: %v", err)
		return
	}
	again, replayed, err := m.shop().Place(ctx, r)
	if err != nil || !replayed || cmp.Diff(o, again) != "" {
		t.Errorf("placed again: got %+v, replayed %v, %v, want replayed %+v", again, replayed, err, o)
	}
	o.Status = m.end(ctx, t, dice, o)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answered[o.ID] = o
}

// end pays the order, cancels it, tries both at once, or neither. It returns the status that the answers agree on.
func (m *market) end(ctx context.Context, t *testing.T, dice *rand.Rand, o order.Order) order.Status {
	wishes := [][]order.Status{nil, {order.Paid}, {order.Cancelled}, {order.Paid, order.Cancelled}}[dice.IntN(4)]
	ended := make([]error, len(wishes))
	atOnce(len(wishes), func(i int) {
		ended[i] = m.insist(ctx, func(s *order.Service) (err error) {
			wish := withKey(o, fmt.Sprint(wishes[i], o.ID))
			if wishes[i] == order.Paid {
				_, err = s.Pay(ctx, wish)
			} else {
				_, err = s.Cancel(ctx, wish)
			}
			return err
		})
	})
	as := order.Pending
	for i, err := range ended {
		if err == nil && as == order.Pending {
			as = wishes[i]
		} else if err == nil {
			t.Errorf("order %s is both %s and %s", o.ID, as, wishes[i])
		}
	}
	for i, err := range ended {
		if as != wishes[i] {
			wantState(t, err, as)
		}
	}
	return as
}

// insist asks again, each time another instance, until the answer is definite.
func (m *market) insist(ctx context.Context, request func(*order.Service) error) error {
	for {
		err := request(m.shop())
		again := false
		for _, passing := range []error{
			order.ErrUnknownOutcome, order.ErrBusy, order.ErrInProgress, order.ErrTooLate, lock.ErrNotAcquired,
		} {
			again = again || errors.Is(err, passing)
		}
		if !again || ctx.Err() != nil {
			return err
		}
		m.mu.Lock()
		m.retries++
		m.mu.Unlock()
	}
}

func (m *market) shop() *order.Service { return m.shops[rand.IntN(len(m.shops))] }

// check compares the database with what the buyers were answered.
func (m *market) check(t *testing.T) {
	t.Helper()
	rows, err := m.direct.db.DB().QueryContext(t.Context(), "SELECT id, buyer, idempotency_key FROM orders")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	ids := map[string]string{} // by buyer and key
	for rows.Next() {
		var id, buyer, key string
		if err := rows.Scan(&id, &buyer, &key); err != nil {
			t.Fatal(err)
		}
		if _, ok := m.answered[id]; !ok {
			t.Errorf("order %s of %s is there, and its buyer was never answered", id, buyer)
		}
		if other := ids[buyer+" "+key]; other != "" {
			t.Errorf("%s of %s has two orders, %s and %s", key, buyer, other, id)
		}
		ids[buyer+" "+key] = id
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for id, want := range m.answered {
		got, err := m.direct.Order(t.Context(), want.Buyer, id)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("order %s: %v (-answered +there):\n%s", id, err, diff)
		}
	}
	m.direct.audit(t, "")
}
>>>>>>> cut-c
