package lab

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

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
		MemoryLock: Locker(strategy.LockerOf(memory)), strategy.SharedLock: Locker(strategy.LockerOf(memory)),
	}
	shop := strategy.Shop{Store: Store(st)}
	offers := Offers(shop, nil, nil, lockers, nil)
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
		{"read-before-lock", 2, "begun, read mug 5, lock-asked, lock-held, writing, written mug 3, committed, released", nil},
		{"conditional", 2, "begun, read mug 5, writing, written mug, committed", nil},
		{"optimistic", 2, "begun, read mug 5, writing, written mug 3, committed", nil},
		{"for-update", 2, "begun, writing, read mug 5, written mug 3, committed", nil},
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
		if err := place(ctx, shop.Store, offers, c.strategy, name, c.units); !errors.Is(err, c.err) {
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

// place places an order of ann's by one of the strategies, in the trace of ctx.
func place(ctx context.Context, store order.Store, offers []Offer, strategy, sku string, units int64) error {
	by, err := find(offers, strategy)
	if err != nil {
		return err
	}
	choice := choice{strategy: by, trace: workIn(ctx).of()[0]}
	ctx = context.WithValue(context.WithValue(ctx, workKey{}, nil), choiceKey{}, choice)
	_, _, err = order.New(order.Config{Store: store, Strategy: chosen{}}).Place(ctx, order.Request{Buyer: "ann", Key: strategy + " " + sku, Lines: []order.RequestLine{{SKU: sku, Units: units}}})
	return err
}

// wrongShop sells under wrong locks, with everything recorded. buy is for one mug of five.
func wrongShop(t *testing.T, r *Recorder, maxWait time.Duration) (buy func(ctx context.Context, strategy string) error) {
	t.Helper()
	st, err := store.SQLite(t.Context(), t.TempDir()+"/shop.db", store.Options{Through: r.Database(sql.OpenDB)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(r.Redis(Scripts()))
	wrong := WrongLocks(client, LockOptions{TTL: time.Minute, MaxWait: maxWait})
	for name, locker := range wrong {
		wrong[name] = Locker(locker)
	}
	shop := strategy.Shop{Store: Store(st)}
	offers := Offers(shop, nil, nil, wrong, nil)
	sku, err := stock.NewSKU("mug", stock.Money{Minor: 1250, Currency: "EUR"}, 5, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Create(t.Context(), sku); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, strategy string) error {
		return place(ctx, shop.Store, offers, strategy, "mug", 1)
	}
}

// A Recording has the line of the source that takes the next step: of the strategy, or of its wrong lock.
func TestRecording_line(t *testing.T) {
	t.Parallel()
	r := NewRecorder()
	buy := wrongShop(t, r, time.Minute)
	for name, want := range map[string][]string{
		"none":         {"none.go s.read(", "none.go s.Store.InTx(", "none.go stock.Overwrite", "none.go s.Store.InTx("},
		"get-then-del": {"wronglocks.go client.Do(", "locked.go s.read(", "locked.go s.Store.InTx(", "locked.go s.Take", "locked.go s.Store.InTx(", "wronglocks.go client.Get(", "wronglocks.go client.Del("},
	} {
		ctx, trace := begin(t, r, Request{Name: name, Step: true})
		done := make(chan error, 1)
		go func() {
			err := buy(ctx, name)
			trace.End()
			done <- err
		}()
		for _, want := range want {
			seen := until(t, r, name, Stopped)
			file, number, _ := strings.Cut(seen.Line, ".go:")
			files, folder := strategy.Sources, "internal/order/strategy/"
			if strings.HasPrefix(file, "internal/lab/") {
				files, folder = sources, "internal/lab/"
			}
			text, err := files.ReadFile(strings.TrimPrefix(file, folder) + ".go")
			n, also := strconv.Atoi(number)
			if err != nil || also != nil {
				t.Fatalf("%s: before %s: line %q: %v, %v", name, seen.Next, seen.Line, err, also)
			}
			wantFile, wantCode, _ := strings.Cut(want, " ")
			if line := strings.Split(string(text), "\n")[n-1]; file+".go" != folder+wantFile || !strings.Contains(line, wantCode) {
				t.Errorf("%s: before %s: got %s %q, want %s", name, seen.Next, seen.Line, line, want)
			}
			if err := r.Do(t.Context(), Step, name); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if seen := until(t, r, name, Ended); seen.Line != "" {
			t.Errorf("%s: got line %s behind the last step", name, seen.Line)
		}
	}
}

// "The holder waits for itself" where the lock does not count, and gives up.
func TestReentrant(t *testing.T) {
	t.Parallel()
	ctx, _ := begin(t, NewRecorder(), Request{})
	buy := wrongShop(t, NewRecorder(), 10*time.Millisecond)
	if err := buy(ctx, "reentrant"); !errors.Is(err, lock.ErrTimeout) {
		t.Errorf("got %v, want ErrTimeout", err)
	}
	buy = wrongShop(t, NewRecorder(), time.Minute)
	if err := buy(ctx, "reentrant-count"); err != nil {
		t.Errorf("with a count: %v", err)
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
	batch := Share(t.Context(), func() []context.Context { return []context.Context{ann, bob, t.Context()} })
	leases, err := Locker(strategy.LockerOf(memory)).AcquireAll(batch, "mug")
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
