package lane_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/ordertest"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// instance remembers for a second, by a clock that the test moves, and counts what it asks.
type instance struct {
	*ordertest.Shop
	store   *counted
	asked   atomic.Int64 // questions to database and lock
	refused atomic.Int64
	clock   atomic.Int64
}

// counted is a Store that counts what is read.
type counted struct {
	ordertest.Spy
	of        *instance
	levels    atomic.Int64
	keysRead  atomic.Int64
	more      int    // keys that KeysOf returns beside those that are there
	afterKeys func() // nil for nothing
}

func (s *counted) Levels(ctx context.Context, skus []string) (order.Levels, error) {
	s.of.asked.Add(1)
	s.levels.Add(1)
	return s.Spy.Levels(ctx, skus)
}

func (s *counted) Claims(ctx context.Context, keys ...order.BuyerKey) (map[order.BuyerKey]order.Claim, error) {
	s.of.asked.Add(1)
	return s.Spy.Claims(ctx, keys...)
}

func (s *counted) KeysOf(ctx context.Context, sku string, limit int, found func(order.BuyerKey)) error {
	s.of.asked.Add(1)
	s.keysRead.Add(1)
	for i := range s.more {
		found(order.BuyerKey{Buyer: "another", Key: fmt.Sprint(i)})
	}
	err := s.Spy.KeysOf(ctx, sku, limit, found)
	if s.afterKeys != nil {
		s.afterKeys()
	}
	return err
}

type countedLocker struct {
	strategy.Locker
	of *instance
}

func (l countedLocker) AcquireAll(ctx context.Context, keys ...string) (strategy.Leases, error) {
	l.of.asked.Add(1)
	return l.Locker.AcquireAll(ctx, keys...)
}

// remembering returns an instance that hears, of a shop with so many mugs.
func remembering(t *testing.T, db *store.Store, mugs int64) *instance {
	t.Helper()
	r, start := &instance{}, time.Now()
	r.store = &counted{Spy: ordertest.Spy{Store: db}, of: r}
	r.Shop = ordertest.New(t, db, func(c *ordertest.Config) {
		c.Store = r.store
		c.Wrap = func(l strategy.Locker) strategy.Locker { return countedLocker{l, r} }
		c.Lane.Early = 0
		c.Lane.SoldOutFor = time.Second
		c.Lane.OnRefused = func() { r.refused.Add(1) }
		c.Lane.Now = func() time.Time { return start.Add(time.Duration(r.clock.Load())) }
	})
	r.Reset(t)
	r.Supply(t, "mug", mugs)
	r.Lanes.Hears(true)
	return r
}

// elsewhere returns another instance of the shop, whose announcements r hears if it says so.
func (r *instance) elsewhere(t *testing.T, heard bool) *ordertest.Shop {
	return r.Another(t, func(c *ordertest.Config) {
		c.Store, c.Wrap = nil, nil
		c.Lane.OnRefused = nil
		if heard {
			c.Lane.Announce = r.Lanes.Heard
		}
	})
}

// wants asks for one mug; the buyer's name is the key, too.
func (r *instance) wants(t *testing.T, buyer string, want error) (o order.Order, replayed bool) {
	t.Helper()
	o, replayed, err := r.Place(t.Context(), buy(buyer, buyer, 1))
	if !errors.Is(err, want) {
		t.Fatalf("%s: got %v, want %v", buyer, err, want)
	}
	return o, replayed
}

// learns lets the instance find out that there are no mugs, and returns when it knows. Where the
// machine stood still meanwhile, the keys were not read in time: it tries again later.
func (r *instance) learns(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; r.clock.Add(int64(10 * time.Second)) {
		r.wants(t, "finder", order.ErrSoldOut) // who is answered before it knows,
		r.wants(t, "finder", order.ErrSoldOut) // and after
		if r.Lanes.SoldOut(buy("anybody", "new", 1)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not learn that nothing is left")
		}
	}
}

func (r *instance) wantKnown(t *testing.T, want bool) {
	t.Helper()
	if got := r.Lanes.SoldOut(buy("anybody", "new", 1)); got != want {
		t.Fatalf("known to be sold out: %v, want %v", got, want)
	}
}

// "Buyers of them are refused without a lock or a read", also in a cart, and "the refusal says
// that asking again is safe". "A key that has bought must get its order": also one of
// another instance.
func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		r := remembering(t, db, 2)
		r.Supply(t, "hat", 5)
		first, _ := r.wants(t, "ann", nil)
		second := r.elsewhere(t, false).MustPlace(t, buy("bob", "bob", 1))
		r.wantKnown(t, false)
		r.learns(t)

		before := r.asked.Load()
		r.refused.Store(0)
		for i := range 100 {
			r.wants(t, nth(i), order.ErrSoldOut)
		}
		cart := ordertest.Buy("ann", "cart", "hat", 1)
		cart.Lines = append(cart.Lines, order.RequestLine{SKU: "mug", Units: 1})
		_, _, err := r.Place(t.Context(), ordertest.Buy("eve", "hat", "hat", 1)) // from here on the SKU is known to be there
		ordertest.WantErr(t, "hat", err, nil)
		before += r.asked.Load() - before
		_, _, err = r.Place(t.Context(), cart)
		var refusal *order.Error
		if !errors.As(err, &refusal) || !refusal.FromMemory || err.Error() != `sku "mug": not enough units are available` {
			t.Errorf("cart: got %v, want the words of every other refusal, from memory", err)
		}
		if got := r.asked.Load() - before; got != 0 || r.refused.Load() != 101 {
			t.Errorf("%d questions, %d refusals from memory, want 0 and 101", got, r.refused.Load())
		}
		for _, bought := range []order.Order{first, second} {
			again, replayed, err := r.Place(t.Context(), buy(bought.Buyer, bought.Key, 1))
			if err != nil || !replayed || again.ID != bought.ID {
				t.Errorf("%s again: got %s, replayed %v, %v; want a replay", bought.Buyer, again.ID, replayed, err)
			}
			_, _, err = r.Place(t.Context(), buy(bought.Buyer, bought.Key, 2))
			ordertest.WantErr(t, "its key for something else", err, order.ErrKeyReused)
		}
		r.WantLevel(t, "mug", 0, 2)
	})
}

// "Nothing is remembered before the first time, and while it is not" heard, nor with
// SoldOutFor 0; nor where there are more keys than fit.
func TestMemory_notRemembered(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*instance){
		"deaf":          func(r *instance) { r.Lanes.Hears(false) },
		"too many keys": func(r *instance) { r.store.more = 100_001 },
	} {
		r := remembering(t, storetest.SQLite(t), 0)
		change(r)
		for range 3 {
			r.wants(t, "ann", order.ErrSoldOut)
			r.wantKnown(t, false)
		}
		r.Lanes.Close()
		if got := r.store.keysRead.Load(); got > 1 || r.refused.Load() != 0 {
			t.Errorf("%s: the keys were read %d times, %d refusals from memory; want one read at most, and none", name, got, r.refused.Load())
		}
	}
	off := ordertest.New(t, storetest.SQLite(t))
	off.Supply(t, "mug", 0)
	off.Lanes.Hears(true)
	for range 3 {
		_, _, err := off.Place(t.Context(), buy("ann", "key", 1))
		if !errors.Is(err, order.ErrSoldOut) || off.Lanes.SoldOut(buy("eve", "key", 1)) {
			t.Errorf("off: got %v", err)
		}
	}
}

// "A crowd that comes for a SKU with nothing left makes one batch."
func TestMemory_crowd(t *testing.T) {
	t.Parallel()
	const crowd = 5_000
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		r := remembering(t, db, 1)
		first, _ := r.wants(t, "ann", nil)
		r.learns(t)
		r.clock.Add(int64(time.Second))
		lease, err := r.Shared.Acquire(t.Context(), "sku:mug")
		if err != nil {
			t.Fatal(err)
		}
		before, levels, keys := r.asked.Load(), r.store.levels.Load(), r.store.keysRead.Load()
		var all sync.WaitGroup
		var refused, replayed atomic.Int64
		for i := range crowd {
			all.Go(func() {
				ask := buy(nth(i), "key", 1)
				if i == crowd/2 {
					ask = buy("ann", "ann", 1)
				}
				o, again, err := r.Place(t.Context(), ask)
				switch {
				case errors.Is(err, order.ErrSoldOut):
					refused.Add(1)
				case err == nil && again && o.ID == first.ID:
					replayed.Add(1)
				default:
					t.Errorf("%s: got %+v, %v", ask.Buyer, o, err)
				}
			})
		}
		ordertest.Await(t, "queued", crowd, r.Lanes.Queued)
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
		all.Wait()
		if refused.Load() != crowd-1 || replayed.Load() != 1 {
			t.Errorf("%d refused, %d replayed, want %d and 1", refused.Load(), replayed.Load(), crowd-1)
		}
		// A batch is a lease, a read of the stock and one of its keys; ann may need one of her own.
		if got := r.store.levels.Load() - levels; got > 2 || r.asked.Load()-before > 6 || r.store.keysRead.Load() != keys {
			t.Errorf("%d reads of the stock, %d questions in all, keys read %d times more; want 2, 6 and none at most",
				got, r.asked.Load()-before, r.store.keysRead.Load()-keys)
		}
	})
}

// Units that come back can be bought here at once, and elsewhere as soon as it is announced.
func TestMemory_unitsComeBack(t *testing.T) {
	t.Parallel()
	end := func(o order.Order) order.EndRequest { return order.EndRequest{Buyer: o.Buyer, OrderID: o.ID} }
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		for how, giveBack := range map[string]func(t *testing.T, s *ordertest.Shop, o order.Order){
			"cancelled": func(t *testing.T, s *ordertest.Shop, o order.Order) {
				_, err := s.Cancel(t.Context(), end(o))
				ordertest.WantErr(t, "cancel", err, nil)
			},
			"expired": func(t *testing.T, s *ordertest.Shop, o order.Order) {
				s.ExpireIn(t, o, -time.Second)
				if n, err := s.ExpireDue(t.Context(), 10); n != 1 || err != nil {
					t.Errorf("%d expired, %v", n, err)
				}
			},
			"paid too late": func(t *testing.T, s *ordertest.Shop, o order.Order) {
				s.ExpireIn(t, o, -time.Second)
				_, err := s.Pay(t.Context(), end(o))
				ordertest.WantErr(t, "pay", err, order.ErrExpired)
			},
			"restocked": func(t *testing.T, s *ordertest.Shop, _ order.Order) {
				s.Deliver(t, "mug", 1)
				s.Lanes.Restocked("mug")
			},
		} {
			for where, elsewhere := range map[string]bool{"here": false, "elsewhere": true} {
				t.Run(how+" "+where, func(t *testing.T) {
					r := remembering(t, db, 1)
					giver := r.Shop
					if elsewhere {
						giver = r.elsewhere(t, true)
					}
					o, _ := r.wants(t, "ann", nil)
					r.learns(t)
					giveBack(t, giver, o)
					r.wants(t, "eve", nil)
					if o, replayed := r.wants(t, "ann", nil); !replayed || o.Status != order.Pending {
						t.Errorf("ann again: got %+v, want the replay", o)
					}
				})
			}
		}
	})
}

// "For so long a buyer may be refused though units are left": keep, and no longer, where the
// announcement is lost.
func TestMemory_announcementIsLost(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		r := remembering(t, db, 1)
		o, _ := r.wants(t, "ann", nil)
		r.learns(t)
		_, err := r.elsewhere(t, false).Cancel(t.Context(), order.EndRequest{Buyer: "ann", OrderID: o.ID})
		ordertest.WantErr(t, "cancel", err, nil)
		r.clock.Add(int64(time.Second - 1))
		r.wants(t, "eve", order.ErrSoldOut)
		r.clock.Add(1)
		r.wants(t, "eve", nil)
		r.WantLevel(t, "mug", 0, 1)
	})
}

// "The announcement ends what is known, or is being learned", whatever it is and whatever was
// being read.
func TestMemory_announcedWhileLearning(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.Store) {
		for what, announce := range map[string]func(*instance){
			"units came back": func(r *instance) { r.Lanes.Heard("hat", "mug") },
			"given back here": func(r *instance) { r.Lanes.Restocked("mug") },
			"nothing heard":   func(r *instance) { r.Lanes.Hears(false) },
			"heard again":     func(r *instance) { r.Lanes.Hears(false); r.Lanes.Hears(true) },
		} {
			for _, when := range []string{"stock", "keys"} {
				t.Run(what+" "+when, func(t *testing.T) {
					r := remembering(t, db, 0)
					_, _, err := r.Place(t.Context(), ordertest.By("none", buy("first", "first", 1)))
					ordertest.WantErr(t, "first", err, order.ErrSoldOut) // the SKU is known to be there
					once := sync.OnceFunc(func() { announce(r) })
					if when == "stock" {
						r.store.AfterLevels = once
					} else {
						r.store.afterKeys = once
					}
					r.wants(t, "ann", order.ErrSoldOut)
					r.Lanes.Close() // the leader is done
					r.wantKnown(t, false)
				})
			}
		}
	})
}
