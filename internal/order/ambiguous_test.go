package order_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// 500 COMMITs that were done and 500 that were not, none of them answered, on
// three instances, while buyers place, pay and cancel: "each order ends as exactly
// one outcome, the buyer's retry gets it."
func TestService_ambiguousCommits(t *testing.T) {
	t.Parallel()
	const (
		ofEach = 500
		buyers = 32
		seed   = 20260304
	)
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database, locks := kind.New(t, ""), lock.NewMemory()
		m := &market{cutter: storetest.NewCutter(seed), told: map[string]order.Order{}}
		m.direct = setup(t, database.Migrated(t), locks, 10*time.Second)
		for range 3 {
			db := database.Through(t, &storetest.Proxy{Judge: m.cutter.Judge}).Open(t)
			m.shops = append(m.shops, setup(t, db, locks, 10*time.Second).Service)
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
				if cuts := m.cutter.Cuts(); cuts.Dropped >= ofEach && cuts.Muted >= ofEach {
					return
				}
				m.buy(ctx, t, dice, fmt.Sprintf("buyer-%d", i), fmt.Sprintf("key-%d", n))
			}
		})
		t.Logf("%+v, %d orders, %d answers that had to be asked for again, in %v",
			m.cutter.Cuts(), len(m.told), m.retries, time.Since(start).Round(time.Millisecond))
		m.cutter.Stop()
		m.check(t)
	})
}

const (
	hot   = "hot"
	colds = 5
)

func cold(i int) string { return fmt.Sprintf("cold-%d", i) }

// market is a shop whose COMMITs are cut, and what its buyers were told.
type market struct {
	cutter *storetest.Cutter
	shops  []*order.Service
	direct *bundle // an instance of the same shop whose COMMITs are not

	mu      sync.Mutex
	told    map[string]order.Order // by id, with the status that it ended in
	retries int
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
	if errors.Is(err, stock.ErrSoldOut) && sku == hot {
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
	m.told[o.ID] = o
}

// end pays the order, cancels it, tries both at once, or neither. It returns the
// status that the answers agree on.
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
			order.ErrUnknownOutcome, order.ErrUnsettled, order.ErrBusy, order.ErrInProgress, order.ErrTooLate, lock.ErrNotAcquired,
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

// check compares the database with what the buyers were told.
func (m *market) check(t *testing.T) {
	t.Helper()
	var rows []struct{ ID, Buyer, IdempotencyKey string }
	if err := m.direct.db.Table("orders").Find(&rows).Error; err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for _, row := range rows {
		if _, ok := m.told[row.ID]; !ok {
			t.Errorf("order %s of %s is there, and nobody was told", row.ID, row.Buyer)
		}
		key := row.Buyer + " " + row.IdempotencyKey
		if other := keys[key]; other != "" {
			t.Errorf("%s has two orders, %s and %s", key, other, row.ID)
		}
		keys[key] = row.ID
	}
	for id, told := range m.told {
		got, err := m.direct.Order(t.Context(), told.Buyer, id)
		if diff := cmp.Diff(told, got); err != nil || diff != "" {
			t.Errorf("order %s: %v (-told +there):\n%s", id, err, diff)
		}
	}
	m.direct.audit(t, "")
}
