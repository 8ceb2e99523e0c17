package lab

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

// A Trace has the steps of a request in order, with the units that were read and, where the strategy computes them,
// written. Header writes them.
func TestTrace_steps(t *testing.T) {
	t.Parallel()
	st, err := store.SQLite(t.Context(), t.TempDir()+"/shop.db", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	memory := lock.New(lock.NewMemory(), lock.Options{})
	t.Cleanup(func() { _ = memory.Close() })
	lockers := map[string]strategy.Locker{
		strategy.MemoryLock: Locker(strategy.Lease(memory)), strategy.RedisLock: Locker(strategy.Lease(memory)),
	}
	shop := strategy.Shop{Store: Store(st)}
	service := order.New(order.Config{Store: shop.Store, Offers: strategy.Offers(shop, nil, lockers, nil)})
	r := NewRecorder()
	for i, c := range []struct {
		strategy string
		units    int64
		want     string
		err      error
	}{
		{"none", 2, "begun, read mug 5, writing, written mug 3, committed", nil},
		{"mutex", 2, "begun, lock-asked, lock-held, read mug 5, writing, written mug 3, committed, released", nil},
		{"redis", 2, "begun, lock-asked, lock-held, read mug 5, writing, written mug, committed, released", nil},
		{"release-before-commit", 2, "begun, lock-asked, lock-held, read mug 5, writing, written mug 3, released, committed", nil},
		{"conditional", 2, "begun, read mug 5, writing, written mug, committed", nil},
		{"for-update", 2, "begun, read mug 5, writing, read mug 5, written mug 3, committed", nil},
		{"redis", 6, "begun, lock-asked, lock-held, read mug 5, released", order.ErrSoldOut},
		{"conditional", 6, "begun, read mug 5, writing", order.ErrSoldOut},
	} {
		name := fmt.Sprintf("mug-%d", i)
		sku, err := stock.NewSKU(name, stock.Money{Minor: 1250, Currency: "EUR"}, 5, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Create(t.Context(), sku); err != nil {
			t.Fatal(err)
		}
		ctx, trace := begin(t, r, Request{})
		request := order.Request{Buyer: "ann", Key: name, Lines: []order.RequestLine{{SKU: name, Units: c.units}}, Strategy: c.strategy}
		if _, _, err := service.Place(ctx, request); !errors.Is(err, c.err) {
			t.Fatalf("%s: got %v, want %v", c.strategy, err, c.err)
		}
		trace.End()
		header := trace.Header()
		times := regexp.MustCompile(`;at=\d{16}`)
		got := strings.NewReplacer(";sku="+name, " mug", ";units=", " ").Replace(times.ReplaceAllString(header, ""))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, %d units (-want +got):\n%s", c.strategy, c.units, diff)
		}
		if all := times.FindAllString(header, -1); !slices.IsSorted(all) {
			t.Errorf("%s: a step is earlier than the one before it: %s", c.strategy, header)
		}
	}
}

// Work for a batch is in the trace of each request in it, but for the release.
func TestLocker_batch(t *testing.T) {
	t.Parallel()
	memory := lock.New(lock.NewMemory(), lock.Options{})
	t.Cleanup(func() { _ = memory.Close() })
	r := NewRecorder()
	ann, anns := begin(t, r, Request{})
	bob, bobs := begin(t, r, Request{})
	batch := order.WithRequests(t.Context(), func() []context.Context { return []context.Context{ann, bob, t.Context()} })
	leases, err := Locker(strategy.Lease(memory)).AcquireAll(batch, "mug")
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Release(); err != nil {
		t.Fatal(err)
	}
	for _, trace := range []*Trace{anns, bobs} {
		got := regexp.MustCompile(`;at=\d+`).ReplaceAllString(trace.Header(), "")
		if want := "begun, lock-asked, lock-held"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
