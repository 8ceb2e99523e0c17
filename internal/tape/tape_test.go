package tape

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"example.com/shop/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, s *Shelf) (*redis.Client, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	c.AddHook(s.Redis(func(string) string { return "" }))
	return c, server
}

func record(t *testing.T, s *Shelf, r Request) (context.Context, *Tape) {
	t.Helper()
	ctx, tape, err := s.Record(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, tape
}

// until waits for a state, with a bound.
func until(t *testing.T, s *Shelf, name, state string) Seen {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for seen := (Seen{}); ; {
		var err error
		if seen, err = s.Look(ctx, name, seen.Version); err != nil || ctx.Err() != nil {
			t.Fatalf("%v, got %+v, want state %s", err, seen, state)
		}
		if seen.State == state {
			return seen
		}
	}
}

func told(seen Seen) []string {
	var all []string
	for _, e := range seen.Events {
		all = append(all, e.Kind+" "+e.Text+" = "+e.Answer)
	}
	return all
}

// doc.go: "A stop comes ahead of the command: nothing of it has left the process.
// It ends by Resume". Commands without the request's context are known by the SKU.
func TestShelf_redis(t *testing.T) {
	t.Parallel()
	s := NewShelf()
	c, server := client(t, s)
	ctx, tape := record(t, s, Request{Name: "a", Stop: "redis:DEL", SKUs: []string{"mug"}})
	if err := c.Set(ctx, "lock:{sku:mug}", "ann", 0).Err(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Del(context.Background(), "lock:{sku:mug}").Err() }()
	until(t, s, "a", Stopped)
	if !server.Exists("lock:{sku:mug}") {
		t.Error("the key is gone, though DEL was stopped")
	}
	if err := errors.Join(s.Resume("a"), s.Resume("a"), <-done); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(context.Background(), "lock:{sku:mug2}").Err(); !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	tape.End()
	want := []string{
		"redis SET lock:{sku:mug} ann = OK", "stop stopped before DEL = ", "stop goes on = ", "redis DEL lock:{sku:mug} = 1",
	}
	if got := told(until(t, s, "a", Ended)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// "COMMIT included"; and a stop ends with the request's own context.
func TestShelf_database(t *testing.T) {
	t.Parallel()
	s := NewShelf()
	db, err := store.SQLite(t.Context(), filepath.Join(t.TempDir(), "shop.db"), store.Through(s.Database(sql.OpenDB)))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(db)
	if err := db.Exec("CREATE TABLE t (n INTEGER)").Error; err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	ctx, tape := record(t, s, Request{Name: "a", Stop: "sql:COMMIT"})
	done := make(chan error, 1)
	go func() {
		tx, err := pool.BeginTx(ctx, nil)
		if err == nil {
			_, err = tx.ExecContext(ctx, "INSERT INTO `t` (n) VALUES (?)", 1)
			err = errors.Join(err, tx.Commit())
		}
		done <- err
	}()
	until(t, s, "a", Stopped)
	var n int
	if err := pool.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 0 {
		t.Errorf("%v, %d rows, want none before the COMMIT", err, n)
	}
	if err := errors.Join(s.Resume("a"), <-done); err != nil {
		t.Fatal(err)
	}
	tape.End()
	want := []string{"sql BEGIN = OK", "sql INSERT INTO t = 1 row", "stop stopped before COMMIT = ", "stop goes on = ", "sql COMMIT = OK"}
	if got := told(until(t, s, "a", Ended)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// "It ends by Resume, with the request's own context, or after Longest".
func TestTape_contextEndsAStop(t *testing.T) {
	t.Parallel()
	s := NewShelf()
	ctx, tape := record(t, s, Request{Name: "a", Stop: "step:read"})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); tape.Step(ctx, "read", "") }()
	until(t, s, "a", Stopped)
	cancel()
	<-done
	tape.Step(ctx, "read", "") // a request stops once
	if seen := until(t, s, "a", Running); !strings.Contains(strings.Join(told(seen), ";"), "its context has ended") {
		t.Errorf("got %q, want why it goes on", told(seen))
	}
}

func TestShelf_keepsTheLatest(t *testing.T) {
	t.Parallel()
	s := NewShelf()
	for i := range maxTapes + 1 {
		record(t, s, Request{Name: "a-" + strings.Repeat("x", i%60) + string(rune('a'+i/60))})
	}
	if _, err := s.Look(t.Context(), "a-a", 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("the oldest: got %v, want ErrNotFound", err)
	}
	if len(s.tapes) != maxTapes {
		t.Errorf("got %d tapes, want %d", len(s.tapes), maxTapes)
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
