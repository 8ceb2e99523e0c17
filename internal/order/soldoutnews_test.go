package order_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// "That ends what is known": units that come back can be bought here at once, and
// elsewhere as soon as it is heard.
func TestSoldOut_unitsComeBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		for how, giveBack := range map[string]func(t *testing.T, s *order.Service, b *bundle, o order.Order){
			"cancelled": func(t *testing.T, s *order.Service, _ *bundle, o order.Order) {
				if _, err := s.Cancel(t.Context(), payment(o)); err != nil {
					t.Error(err)
				}
			},
			"expired": func(t *testing.T, s *order.Service, b *bundle, o order.Order) {
				b.expireIn(t, o, -time.Second)
				if n, err := s.ExpireDue(t.Context(), 10); n != 1 || err != nil {
					t.Errorf("%d expired, %v", n, err)
				}
			},
			"paid too late": func(t *testing.T, s *order.Service, b *bundle, o order.Order) {
				b.expireIn(t, o, -time.Second)
				if _, err := s.Pay(t.Context(), payment(o)); !errors.Is(err, order.ErrExpired) {
					t.Errorf("got %v, want ErrExpired", err)
				}
			},
			"restocked": func(t *testing.T, s *order.Service, b *bundle, _ order.Order) {
				b.deliver(t, "mug", 1)
				s.Restocked("mug")
			},
		} {
			for where, elsewhere := range map[string]bool{"here": false, "elsewhere": true} {
				t.Run(how+" "+where, func(t *testing.T) {
					b := setup(t, db, lock.NewMemory(), 10*time.Second)
					reset(t, db)
					if err := db.Exec("DELETE FROM deliveries").Error; err != nil {
						t.Fatal(err)
					}
					b.supply(t, "mug", 1)
					r := remembering(t, b)
					giver := r.Service
					if elsewhere {
						giver = b.with(t, func(c *order.Config) { c.SoldOutFor, c.Announce = time.Second, r.Heard })
					}
					o, _ := r.wants(t, "ann", nil)
					r.learns(t)
					giveBack(t, giver, b, o)
					r.wants(t, "eve", nil)
					if o, replayed := r.wants(t, "ann", nil); !replayed || o.Status != order.Pending {
						t.Errorf("ann again: got %+v, want the replay", o)
					}
				})
			}
		}
	})
}

// "For so long a buyer may be told that nothing is left": keep, and no longer, where
// the news is lost.
func TestSoldOut_newsIsLost(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 1)
		r := remembering(t, b)
		o, _ := r.wants(t, "ann", nil)
		r.learns(t)
		if _, err := b.Service.Cancel(t.Context(), payment(o)); err != nil { // which tells nobody
			t.Fatal(err)
		}
		r.wait(time.Second - 1)
		r.wants(t, "eve", stock.ErrSoldOut)
		r.wait(1)
		r.wants(t, "eve", nil)
		b.wantLevel(t, "mug", 0, 1)
	})
}

// "A look that began before the news cannot be kept after it", whatever the news is
// and whatever was being read.
func TestSoldOut_newsWhileLearning(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		for what, tell := range map[string]func(*rememberer){
			"units came back": func(r *rememberer) { r.Heard("hat", "mug") },
			"given back here": func(r *rememberer) { r.Restocked("mug") },
			"nothing heard":   func(r *rememberer) { r.Hears(false) },
			"heard again":     func(r *rememberer) { r.Hears(false); r.Hears(true) },
		} {
			for _, when := range []string{"stock", "keys"} {
				t.Run(what+" "+when, func(t *testing.T) {
					b := setup(t, db, lock.NewMemory(), 10*time.Second)
					reset(t, db)
					b.supply(t, "mug", 0)
					r := remembering(t, b)
					once := sync.OnceFunc(func() { tell(r) })
					if when == "stock" {
						r.stock.after = once
					} else {
						r.store.afterKeys = once
					}
					r.wants(t, "ann", stock.ErrSoldOut)
					r.Close() // the leader is done
					r.wantKnown(t, false)
				})
			}
		}
	})
}
