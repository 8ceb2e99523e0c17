package order_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// ends are the ways in which a buyer ends an order.
func ends(s *order.Service) map[order.Status]func(context.Context, order.EndRequest) (order.Ended, error) {
	return map[order.Status]func(context.Context, order.EndRequest) (order.Ended, error){
		order.Paid: s.Pay, order.Cancelled: s.Cancel,
	}
}

func withKey(o order.Order, key string) order.EndRequest {
	return order.EndRequest{Buyer: o.Buyer, OrderID: o.ID, Key: key}
}

// wantKeys fails unless so many keys are on record.
func (b *bundle) wantKeys(t *testing.T, want int64) {
	t.Helper()
	var got int64
	if err := b.db.Table("idempotency_keys").Count(&got).Error; err != nil || got != want {
		t.Errorf("got %d keys, %v, want %d", got, err, want)
	}
}

// "A payment and a cancellation may have a key, under the same rules and beside
// the keys of orders: none is good for two requests."
func TestService_end_key(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		for as, end := range ends(b.Service) {
			sku, key := "mug-"+string(as), "end-"+string(as)
			b.supply(t, sku, 10)
			o, other := b.place(t, "first-"+sku, sku, 1), b.place(t, "second-"+sku, sku, 1)
			first, err := end(t.Context(), withKey(o, key))
			if err != nil || !first.First || first.Replayed || first.Status != as {
				t.Fatalf("%s: %+v, %v, want the first answer", as, first, err)
			}
			for range 2 {
				again, err := end(t.Context(), withKey(o, key))
				if err != nil || again.First || !again.Replayed {
					t.Errorf("%s again: %+v, %v, want a replay", as, again, err)
				}
				if diff := cmp.Diff(first.Order, again.Order); diff != "" {
					t.Errorf("%s again (-first +again):\n%s", as, diff)
				}
			}
			for name, reuse := range map[string]func() error{
				"another order": func() error { _, err := end(t.Context(), withKey(other, key)); return err },
				"pay":           func() error { _, err := b.Service.Pay(t.Context(), withKey(other, key)); return err },
				"cancel":        func() error { _, err := b.Service.Cancel(t.Context(), withKey(other, key)); return err },
				"place":         func() error { _, _, err := b.Place(t.Context(), buy(key, sku, 1)); return err },
				"a placing key": func() error { _, err := end(t.Context(), withKey(other, "second-"+sku)); return err },
			} {
				if err := reuse(); !errors.Is(err, order.ErrKeyReused) {
					t.Errorf("%s with the key that %s: %v, want ErrKeyReused", name, as, err)
				}
			}
			b.wantEnd(t, other, order.Pending, sku, b.audit(t, sku).Level)
		}
		b.wantKeys(t, 6)
	})
}

// "A refusal, of an order or of its end, leaves its key free." An order that has
// ended so already is no refusal.
func TestService_end_keyOfARefusal(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 10)
		paid, due, open := b.place(t, "k1", "mug", 1), b.place(t, "k2", "mug", 1), b.place(t, "k3", "mug", 1)
		b.makeDue(t, due)
		for _, first := range []bool{true, false} {
			if now, err := b.Service.Pay(t.Context(), withKey(paid, "")); err != nil || now.First != first || now.Replayed {
				t.Fatalf("without a key: %+v, %v, want first %v", now, err, first)
			}
		}
		b.wantKeys(t, 3)
		for _, replay := range []bool{false, true} {
			if now, err := b.Service.Pay(t.Context(), withKey(paid, "paid before")); err != nil || now.First || now.Replayed != replay {
				t.Errorf("paid without a key before: %+v, %v, want it not first, replayed %v", now, err, replay)
			}
		}
		b.wantKeys(t, 4)

		_, err := b.Service.Cancel(t.Context(), withKey(paid, "key"))
		wantState(t, err, order.Paid)
		_, err = b.Service.Pay(t.Context(), withKey(due, "key"))
		wantState(t, err, order.Expired)
		foreign := withKey(open, "key")
		foreign.Buyer = "bob"
		if _, err := b.Service.Pay(t.Context(), foreign); !errors.Is(err, order.ErrNotFound) {
			t.Errorf("another buyer: %v, want ErrNotFound", err)
		}
		for key, want := range map[string]error{
			strings.Repeat("k", order.MaxKey+1): order.ErrKeyInvalid, "a\nb": order.ErrKeyInvalid, "schlüssel": order.ErrKeyInvalid,
		} {
			if _, err := b.Service.Pay(t.Context(), withKey(open, key)); !errors.Is(err, want) {
				t.Errorf("key %.20q: %v, want %v", key, err, want)
			}
		}
		if _, _, err := b.Place(t.Context(), buy("key", "mug", 100)); !errors.Is(err, stock.ErrSoldOut) {
			t.Errorf("too many: %v, want ErrSoldOut", err)
		}
		b.wantKeys(t, 4)
		if now, err := b.Service.Cancel(t.Context(), withKey(open, "key")); err != nil || !now.First || now.Replayed {
			t.Errorf("the key is free: %+v, %v, want the first answer", now, err)
		}
		b.wantEnd(t, open, order.Cancelled, "mug", stock.Level{Supplied: 10, Available: 9, Sold: 1})
	})
}

// Between a request's look for its key and its transaction, a twin or another
// request may come with the same key.
func TestService_end_keyTakenMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 10)
		o, other := b.place(t, "k1", "mug", 1), b.place(t, "k2", "mug", 1)
		s, g := gated(t, b)
		for _, c := range []struct {
			first    order.Order
			replayed bool
			err      error
		}{{other, false, order.ErrKeyReused}, {o, true, nil}} {
			key := "of " + c.first.ID
			g.before = func() {
				g.before = nil
				if now, err := b.Service.Pay(t.Context(), withKey(c.first, key)); err != nil || !now.First || now.Replayed {
					t.Errorf("first: %+v, %v, want the first answer", now, err)
				}
			}
			paid, err := s.Pay(t.Context(), withKey(o, key))
			if paid.First || paid.Replayed != c.replayed || !errors.Is(err, c.err) || err == nil && paid.Status != order.Paid {
				t.Errorf("got %+v, %v, want it not first, replayed %v, %v", paid, err, c.replayed, c.err)
			}
		}
		b.wantEnd(t, o, order.Paid, "mug", stock.Level{Supplied: 10, Available: 8, Sold: 2})
	})
}

// A payment whose commit is not answered is asked for again, and does not take
// its own key for another's, nor what was paid before for its own doing.
func TestService_end_keyUnanswered(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 10)
		lost := fmt.Errorf("%w: connection lost", order.ErrUnknownOutcome)
		done, notDone := b.place(t, "k1", "mug", 1), b.place(t, "k2", "mug", 1)
		s, g := gated(t, b)
		g.answer = func(error) error { g.answer = nil; return lost }
		if o, err := s.Pay(t.Context(), withKey(done, "done")); err != nil || !o.First || !o.Replayed || o.Status != order.Paid {
			t.Errorf("commit done, answer lost: %+v, %v, want it paid, first and replayed", o, err)
		}
		g.refuse, g.answer = errors.New("no"), func(error) error { g.refuse, g.answer = nil, nil; return lost }
		if o, err := s.Pay(t.Context(), withKey(notDone, "not done")); err != nil || !o.First || o.Replayed || o.Status != order.Paid {
			t.Errorf("commit not done, answer lost: %+v, %v, want it paid, first", o, err)
		}
		for _, key := range []string{"", "another key"} {
			g.answer = func(error) error { g.answer = nil; return lost }
			if o, err := s.Pay(t.Context(), withKey(done, key)); err != nil || o.First || o.Status != order.Paid {
				t.Errorf("paid before, answer lost: %+v, %v, want it paid, not first", o, err)
			}
		}
		b.wantKeys(t, 5)
		b.wantEnd(t, done, order.Paid, "mug", stock.Level{Supplied: 10, Available: 8, Sold: 2})
	})
}

// "Once it is purged, it may be used again and makes a new order; until then it
// counts, however old it is."
func TestService_Place_purgedKey(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 10)
		first := b.place(t, "key", "mug", 1)
		for _, table := range []string{"orders", "idempotency_keys"} {
			if err := b.db.Exec("UPDATE " + table + " SET created_at = '2020-01-01 00:00:00.000000'").Error; err != nil {
				t.Fatal(err)
			}
		}
		if again, replayed, err := b.Place(t.Context(), buy("key", "mug", 1)); err != nil || !replayed || again.ID != first.ID {
			t.Errorf("old, not purged: %s, replayed %v, %v, want %s", again.ID, replayed, err, first.ID)
		}
		if n, err := b.orders.PurgeKeys(t.Context(), 24*time.Hour); n != 1 || err != nil {
			t.Fatalf("purged %d, %v, want 1", n, err)
		}
		if again, replayed, err := b.Place(t.Context(), buy("key", "mug", 1)); err != nil || replayed || again.ID == first.ID {
			t.Errorf("purged: %s, replayed %v, %v, want a new order", again.ID, replayed, err)
		}
		if n := b.audit(t, "mug").Orders; n != 2 {
			t.Errorf("%d orders, want 2", n)
		}
	})
}

// A key may be purged between the transaction that finds it taken and the look
// for what it made: then nothing was changed, and asking again is safe.
func TestService_keyPurgedMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 10)
		o := b.place(t, "k1", "mug", 1)
		s, g := gated(t, b)
		twin := func(ask func() error) {
			g.before = func() {
				g.before = nil
				if err := ask(); err != nil {
					t.Errorf("twin: %v", err)
				}
			}
			g.answer = func(err error) error {
				g.answer = nil
				if _, failed := b.orders.PurgeKeys(t.Context(), -time.Minute); failed != nil {
					t.Error(failed)
				}
				return err
			}
		}
		r := buy("k2", "mug", 1)
		r.Strategy = "conditional" // no lock, so that the twin can come in between
		twin(func() error { _, _, err := b.Place(t.Context(), r); return err })
		if _, _, err := s.Place(t.Context(), r); !errors.Is(err, order.ErrBusy) || errors.Is(err, order.ErrKeyTaken) {
			t.Errorf("place: %v, want ErrBusy", err)
		}
		twin(func() error { _, err := b.Service.Pay(t.Context(), withKey(o, "k3")); return err })
		if _, err := s.Pay(t.Context(), withKey(o, "k3")); !errors.Is(err, order.ErrBusy) || errors.Is(err, order.ErrNotFound) {
			t.Errorf("pay: %v, want ErrBusy", err)
		}
		b.wantEnd(t, o, order.Paid, "mug", stock.Level{Supplied: 10, Available: 8, Reserved: 1, Sold: 1})
	})
}
