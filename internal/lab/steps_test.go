package lab

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
)

// A Trace has the steps of a request in order, with the units that were read and, if the strategy computes them, the
// units that were written. Header writes the steps.
func TestTrace_steps(t *testing.T) {
	t.Parallel()
	st := openStore(t, store.Options{})
	memory := lock.New(lock.NewMemory(), lock.Options{})
	t.Cleanup(func() { _ = memory.Close() })
	lockers := map[string]strategy.Locker{
		MemoryLock: Locker(strategy.LockerOf(memory)), strategy.SharedLock: Locker(strategy.LockerOf(memory)),
	}
	shop := strategy.Shop{Store: Store(st)}
	offers := Offers(Parts{Parts: &app.Parts{Shop: shop}, Lockers: lockers}, nil)
	r := new(Recorder)
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
		supply(t, st, name)
		ctx, trace := begin(t, r, "")
		if err := place(ctx, shop.Store, offers, c.strategy, name, c.units); !errors.Is(err, c.err) {
			t.Fatalf("%s: got %v, want %v", c.strategy, err, c.err)
		}
		trace.End()
		steps := taken(t, trace)
		if diff := cmp.Diff(c.want, strings.ReplaceAll(stepNames(steps), name, "mug")); diff != "" {
			t.Errorf("%s, %d units (-want +got):\n%s", c.strategy, c.units, diff)
		}
		if !slices.IsSortedFunc(steps, func(a, b Taken) int { return int(a.At - b.At) }) || steps[0].At < 1e15 {
			t.Errorf("%s: a step is earlier than the one before it: %v", c.strategy, steps)
		}
	}
}

// taken returns the steps in the header of a trace.
func taken(t *testing.T, trace *Trace) (steps []Taken) {
	t.Helper()
	if err := json.Unmarshal([]byte(trace.Header()), &steps); err != nil {
		t.Fatal(err)
	}
	return steps
}

func stepNames(steps []Taken) string {
	return strings.Join(order.Map(steps, func(s Taken) string {
		words := s.Step
		if s.SKU != "" {
			words += " " + s.SKU
		}
		if s.Units != nil {
			words += fmt.Sprint(" ", *s.Units)
		}
		return words
	}), ", ")
}

// openStore returns a database that is migrated.
func openStore(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	st, err := store.SQLite(t.Context(), t.TempDir()+"/shop.db", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

// supply puts five units of a SKU up for sale.
func supply(t *testing.T, st *store.Store, name string) {
	t.Helper()
	sku, err := stock.NewSKU(name, stock.Money{Minor: 1250, Currency: "EUR"}, 5, time.Now())
	if err == nil {
		err = st.Create(t.Context(), sku)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// place places an order of ann's by one of the strategies, in the trace of ctx.
func place(ctx context.Context, store order.Store, offers []Offer, strategy, sku string, units int64) error {
	by, err := Find(offers, strategy)
	if err != nil {
		return err
	}
	choice := &choice{strategy: by.Strategy, trace: workIn(ctx).of[0]}
	ctx = context.WithValue(context.WithValue(ctx, workKey{}, nil), choiceKey{}, choice)
	_, _, err = order.New(order.Config{Store: store, Strategy: chosen{}}).Place(ctx,
		order.Request{Buyer: "ann", Key: strategy + " " + sku, Lines: []order.Line{{SKU: sku, Units: units}}})
	return err
}

// A Recording has the line of the source that takes the next step: of the strategy, or of its wrong lock.
func TestRecording_line(t *testing.T) {
	t.Parallel()
	r := new(Recorder)
	st := openStore(t, store.Options{Through: r.Database(sql.OpenDB)})
	supply(t, st, "mug")
	_, client := recordedRedis(t, r)
	locks := WrongLocks(client, LockOptions{TTL: time.Minute, MaxWait: time.Minute})
	for name, locker := range locks {
		locks[name] = Locker(locker)
	}
	shop := strategy.Shop{Store: Store(st)}
	offers := Offers(Parts{Parts: &app.Parts{Shop: shop}, Lockers: locks}, nil)
	for name, want := range map[string][]string{
		"none": {"none.go s.read(", "none.go s.Store.InTx(", "none.go stock.Overwrite", "none.go s.Store.InTx("},
		"get-then-del": {"wronglocks.go client.Do(", "locked.go s.read(", "locked.go s.Store.InTx(", "locked.go s.Take",
			"locked.go s.Store.InTx(", "wronglocks.go client.Get(", "wronglocks.go client.Del("},
	} {
		ctx, trace := begin(t, r, name)
		done := make(chan error, 1)
		go func() {
			err := place(ctx, shop.Store, offers, name, "mug", 1)
			trace.End()
			done <- err
		}()
		for _, want := range want {
			seen := until(t, r, name, Stopped)
			file, number, _ := strings.Cut(seen.Line, ":")
			text, err := Source(file)
			n, also := strconv.Atoi(number)
			if err != nil || also != nil {
				t.Fatalf("%s: before %s: line %q: %v, %v", name, seen.Next, seen.Line, err, also)
			}
			wantFile, wantCode, _ := strings.Cut(want, " ")
			if line := strings.Split(string(text), "\n")[n-1]; path.Base(file) != wantFile || !strings.Contains(line, wantCode) {
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
			t.Errorf("%s: got line %s after the last step", name, seen.Line)
		}
	}
}

// The steps of a batch are in the trace of each request in the batch, except the release.
func TestLocker_batch(t *testing.T) {
	t.Parallel()
	memory := lock.New(lock.NewMemory(), lock.Options{})
	t.Cleanup(func() { _ = memory.Close() })
	r := new(Recorder)
	ann, anns := begin(t, r, "")
	bob, bobs := begin(t, r, "")
	batch := Share(t.Context(), []context.Context{ann, bob, t.Context()})
	leases, err := Locker(strategy.LockerOf(memory)).AcquireAll(batch, "mug")
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Release(); err != nil {
		t.Fatal(err)
	}
	for _, trace := range []*Trace{anns, bobs} {
		if got, want := stepNames(taken(t, trace)), "begun, lock-asked, lock-held"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
