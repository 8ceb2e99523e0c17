package order_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// "Whether a COMMIT without an answer was done, the first order tells for all":
// each buyer of a batch gets one outcome, and so does its retry.
func TestLanes_ambiguousCommit(t *testing.T) {
	t.Parallel()
	const drop, mute, hang = storetest.Drop, storetest.Mute, storetest.Hang
	const buyers = 5
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		if !kind.Server {
			t.Skip("SQLite: no network lies between a shop and its file")
		}
		for name, c := range map[string]struct {
			commits    fates
			headStarts int
			want       error
			there      bool // so that the retries are replays
		}{
			"done":                 {commits: fates{mute}, there: true},
			"not done":             {commits: fates{drop}, there: true},
			"not done, then done":  {commits: fates{drop, mute}, there: true},
			"never done":           {commits: fates{drop, drop, drop}, want: order.ErrBusy},
			"not noticed for long": {commits: fates{hang}, want: order.ErrUnknownOutcome},

			"of a head start, done":                {commits: fates{mute}, headStarts: 1, there: true},
			"of a head start, not done, then done": {commits: fates{drop, mute}, headStarts: 1, there: true},
			"of a head start, never done":          {commits: fates{drop, drop, drop}, headStarts: 1, want: order.ErrBusy},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				database := kind.New(t, "innodb_lock_wait_timeout=1")
				direct := setup(t, database.Migrated(t), lock.NewMemory(), 10*time.Second)
				direct.supply(t, "mug", 2*buyers+1)
				s := &scene{commits: append(fates{storetest.Pass}, c.commits...)}
				proxy := &storetest.Proxy{Judge: s.judge}
				l := stand(t, setup(t, database.Through(t, proxy).Open(t), lock.NewMemory(), 10*time.Second), func(o *order.Config) {
					o.HeadStarts = c.headStarts
				})
				l.shop.SetRecentFor(aheadFor)
				l.join(t.Context(), t, buyAs("first", "key", 1))
				l.serve(t)
				l.want(t, 0, "first", nil)
				l.told = nil
				l.hold(t)
				for i := range buyers {
					l.join(t.Context(), t, buyAs(fmt.Sprint("buyer-", i), "key", 1))
				}
				awaitQueued(t, l.shared, 1)
				if got := l.shop.HeadStarts(); got != c.headStarts {
					t.Errorf("%d head starts, want %d", got, c.headStarts)
				}
				l.serve(t)
				proxy.LetGo()
				for i := range buyers {
					buyer := fmt.Sprint("buyer-", i)
					l.want(t, i, buyer, c.want)
					again, replayed, err := direct.Place(t.Context(), buyAs(buyer, "key", 1))
					if err != nil || replayed != c.there || c.want == nil && again.ID != l.told[i].order.ID {
						t.Errorf("%s again: got %s, replayed %v, %v, want replayed %v", buyer, again.ID, replayed, err, c.there)
					}
				}
				direct.wantLevel(t, "mug", buyers, buyers+1)
				direct.audit(t, "mug")
			})
		}
	})
}

// "A buyer [...] who is being served gets the outcome", whatever becomes of its ctx.
func TestLanes_goneWhileServed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		b.supply(t, "mug", 5)
		l := stand(t, b)
		going, leave := context.WithCancel(t.Context())
		l.gate.commit = leave
		l.join(going, t, buyAs("gus", "key", 1))
		l.join(t.Context(), t, buyAs("eve", "key", 1))
		l.serve(t)
		l.want(t, 0, "gus", nil)
		l.want(t, 1, "eve", nil)
		b.wantLevel(t, "mug", 3, 2)
	})
}

// Who was sold something before is told that, also where there is no lease; the
// others are told why there is none.
func TestLanes_noLease(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		backend := lock.NewMemory()
		b := setup(t, db, backend, 10*time.Second)
		b.supply(t, "mug", 5)
		first := b.place(t, "first", "mug", 1)
		impatient := lock.New(backend, lock.Options{TTL: 10 * time.Second, MaxWait: 50 * time.Millisecond})
		defer func() {
			if err := impatient.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		s := b.with(t, func(c *order.Config) { c.Lockers[order.RedisLock] = impatient })
		defer s.Close()
		err := b.shared.Do(t.Context(), "sku:mug", func(context.Context, *lock.Lease) error {
			atOnce(2, func(i int) {
				r := buy([]string{"first", "second"}[i], "mug", 1)
				r.Strategy = "lanes"
				o, replayed, err := s.Place(t.Context(), r)
				if i == 0 && (err != nil || !replayed || cmp.Diff(first, o) != "") {
					t.Errorf("replay: got %+v, replayed %v, %v", o, replayed, err)
				}
				if i == 1 && (!errors.Is(err, lock.ErrTimeout) || !errors.Is(err, lock.ErrNotAcquired)) {
					t.Errorf("new: got %v, want ErrTimeout", err)
				}
			})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		b.wantLevel(t, "mug", 4, 1)
	})
}

// What fails for the whole batch is told to all of it, and changes no row.
func TestLanes_allFail(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		for name, c := range map[string]struct {
			sku    string
			refuse error
			want   error
		}{
			"database is busy": {sku: "mug", refuse: order.ErrBusy, want: order.ErrBusy},
			"unknown SKU":      {sku: "hat", want: stock.ErrUnknownSKU},
		} {
			b := setup(t, db, lock.NewMemory(), 10*time.Second)
			reset(t, db)
			b.supply(t, "mug", 10)
			s, g := gated(t, b)
			g.refuse = c.refuse
			atOnce(10, func(i int) {
				r := buy(fmt.Sprint("key-", i), c.sku, 1)
				r.Strategy = "lanes"
				if _, _, err := s.Place(t.Context(), r); !errors.Is(err, c.want) {
					t.Errorf("%s: got %v, want %v", name, err, c.want)
				}
			})
			b.wantLevel(t, "mug", 10, 0)
		}
	})
}

// "MaxLane is how many buyers of one SKU may wait": one more is told at once, and
// those of another SKU have a lane of their own.
func TestLanes_full(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.Kinds()[0].New(t, "").Migrated(t), lock.NewMemory(), 10*time.Second)
	b.supply(t, "mug", 5)
	b.supply(t, "hat", 5)
	l := stand(t, b, func(c *order.Config) { c.MaxLane = 2 })
	l.join(t.Context(), t, buyAs("ann", "key", 1))
	l.join(t.Context(), t, buyAs("bob", "key", 1))
	r := buyAs("eve", "key", 1)
	r.Strategy = "lanes"
	if _, _, err := l.shop.Place(t.Context(), r); !errors.Is(err, lock.ErrQueueFull) || !errors.Is(err, lock.ErrNotAcquired) {
		t.Errorf("third: got %v, want ErrQueueFull", err)
	}
	r.Lines[0].SKU = "hat"
	if _, _, err := l.shop.Place(t.Context(), r); err != nil {
		t.Errorf("third, another SKU: %v", err)
	}
	l.serve(t)
	l.want(t, 0, "ann", nil)
	l.want(t, 1, "bob", nil)
}

// "Close turns away who stands in a lane [...] and lets no more in."
func TestService_Close(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.Kinds()[0].New(t, "").Migrated(t), lock.NewMemory(), 10*time.Second)
	b.supply(t, "mug", 5)
	l := stand(t, b)
	l.join(t.Context(), t, buyAs("ann", "key", 1))
	l.shop.Close()
	l.all.Wait()
	l.want(t, 0, "", lock.ErrClosed)
	r := buyAs("bob", "key", 1)
	r.Strategy = "lanes"
	if _, _, err := l.shop.Place(t.Context(), r); !errors.Is(err, lock.ErrClosed) {
		t.Errorf("after it: got %v, want ErrClosed", err)
	}
	l.shop.Close()
	if err := l.lease.Release(); err != nil {
		t.Error(err)
	}
	b.wantLevel(t, "mug", 5, 0)
}
