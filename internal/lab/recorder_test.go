package lab

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"example.com/shop/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func begin(t *testing.T, r *Recorder, q Request) (context.Context, *Trace) {
	t.Helper()
	ctx, trace, err := r.Begin(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, trace
}

// until waits for a state, with a bound.
func until(t *testing.T, r *Recorder, name, state string) Recording {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for seen := (Recording{}); ; {
		var err error
		if seen, err = r.Look(ctx, name, seen.Version); err != nil || ctx.Err() != nil {
			t.Fatalf("%v, got %+v, want state %s", err, seen, state)
		}
		if seen.State == state {
			return seen
		}
	}
}

func lines(r Recording) []string {
	var all []string
	for _, e := range r.Events {
		all = append(all, e.Kind+" "+e.Text+" = "+e.Answer)
	}
	return all
}

// "A stop comes before the command: nothing of it has left the process. It ends by Resume." "Commands that outlive that
// are known by the name of the SKU in their arguments."
func TestRecorder_redis(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	r := NewRecorder()
	c.AddHook(r.Redis(func(string) string { return "" }))
	ctx, trace := begin(t, r, Request{Name: "a", Stop: "redis:DEL", SKUs: []string{"mug"}})
	if err := c.Set(ctx, "lock:{sku:mug}", "ann", 0).Err(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Del(context.Background(), "lock:{sku:mug}").Err() }()
	until(t, r, "a", Stopped)
	if !server.Exists("lock:{sku:mug}") {
		t.Error("the key is gone, though DEL was stopped")
	}
	if err := errors.Join(r.Resume("a"), r.Resume("a"), <-done); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(context.Background(), "lock:{sku:mug2}").Err(); !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	trace.End()
	want := []string{
		"step begun = ", "redis SET lock:{sku:mug} ann = OK", "stop stopped before DEL = ", "stop goes on = ", "redis DEL lock:{sku:mug} = 1",
	}
	if got := lines(until(t, r, "a", Ended)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// "COMMIT included."
func TestRecorder_database(t *testing.T) {
	t.Parallel()
	r := NewRecorder()
	s, err := store.SQLite(t.Context(), filepath.Join(t.TempDir(), "shop.db"), store.Options{Through: r.Database(sql.OpenDB)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pool := s.DB()
	if _, err := pool.ExecContext(t.Context(), "CREATE TABLE t (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	ctx, trace := begin(t, r, Request{Name: "a", Stop: "sql:COMMIT"})
	done := make(chan error, 1)
	go func() {
		tx, err := pool.BeginTx(ctx, nil)
		if err == nil {
			_, err = tx.ExecContext(ctx, "INSERT INTO `t` (n) VALUES (?)", 1)
			err = errors.Join(err, tx.Commit())
		}
		done <- err
	}()
	until(t, r, "a", Stopped)
	var n int
	if err := pool.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 0 {
		t.Errorf("%v, %d rows, want none before the COMMIT", err, n)
	}
	if err := errors.Join(r.Resume("a"), <-done); err != nil {
		t.Fatal(err)
	}
	trace.End()
	want := []string{
		"step begun = ", "sql BEGIN = OK", "sql INSERT INTO t = 1 row", "stop stopped before COMMIT = ", "stop goes on = ", "sql COMMIT = OK",
	}
	if got := lines(until(t, r, "a", Ended)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// "It ends by Resume, with the request's own context, or after Longest, which is recorded." A request stops once.
func TestTrace_stopEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder()
		ctx, trace := begin(t, r, Request{Name: "a", Stop: "step:read"})
		began := time.Now()
		trace.step(ctx, step{name: stepRead})
		trace.step(ctx, step{name: stepRead})
		if took := time.Since(began); took != Longest {
			t.Errorf("stopped for %v, want %v", took, Longest)
		}
		if seen := until(t, r, "a", Running); !strings.Contains(strings.Join(lines(seen), ";"), "goes on by itself") {
			t.Errorf("got %q, want it recorded", lines(seen))
		}
		ctx, trace = begin(t, r, Request{Name: "b", Stop: "step:read"})
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { defer close(done); trace.step(ctx, step{name: stepRead}) }()
		until(t, r, "b", Stopped)
		cancel()
		<-done
		if seen := until(t, r, "b", Running); !strings.Contains(strings.Join(lines(seen), ";"), "its context has ended") {
			t.Errorf("got %q, want why it goes on", lines(seen))
		}
	})
}

func TestRecorder_Begin_refuses(t *testing.T) {
	t.Parallel()
	r := NewRecorder()
	begin(t, r, Request{Name: "taken"})
	for _, q := range []Request{{Name: "A"}, {Name: strings.Repeat("a", 65)}, {Name: "taken"}, {Name: "a", Stop: "COMMIT"}, {Name: "a", Stop: "sql:commit"}} {
		if _, _, err := r.Begin(t.Context(), q); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: got %v, want ErrInvalid", q, err)
		}
	}
	for i := range maxRecordings { // "keeps the latest"
		begin(t, r, Request{Name: fmt.Sprint("a-", i)})
	}
	if _, err := r.Look(t.Context(), "taken", 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("the oldest: got %v, want ErrNotFound", err)
	}
	if err := r.Resume("none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestStatementText(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"SELECT `a`,`b` FROM `skus`\n WHERE name = 1":  "SELECT … FROM skus WHERE name = 1",
		"INSERT INTO `orders` (`id`) VALUES (1)":       "INSERT INTO orders",
		"UPDATE `skus` SET `available`=0 WHERE id = 1": "UPDATE skus SET available=0 WHERE id = 1",
	} {
		if got := statementText(query, nil); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}
