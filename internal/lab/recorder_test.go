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

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/store"
	"example.com/shop/internal/testserver"
)

// TestMain checks for leaks. For up to a second after Close, go-redis dials a server that a test has taken down.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testserver.Wrap(m), goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

func begin(t *testing.T, r *Recorder, name string, skus ...string) (context.Context, *Trace) {
	t.Helper()
	ctx, trace, err := r.Begin(t.Context(), name, skus)
	if err != nil {
		t.Fatal(err)
	}
	return trace.In(ctx), trace
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

// recordedRedis is a server, and a client of it whose commands are recorded.
func recordedRedis(t *testing.T, r *Recorder) (*miniredis.Miniredis, *redis.Client) {
	server := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	c.AddHook(r.Redis())
	return server, c
}

// "A stop comes before the command: nothing of it has left the process." "It ends by a Move." "Commands that outlive
// the context, such as the renewal and the release of a lease, are known by the name of the SKU in their arguments",
// and do not stop. "A request that has died sends nothing more."
func TestRecorder_redis(t *testing.T) {
	t.Parallel()
	r := new(Recorder)
	server, c := recordedRedis(t, r)
	ctx, trace := begin(t, r, "a", "mug")
	if err := r.Do(ctx, Step, "a"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a step before the first stop: got %v, want ErrInvalid", err)
	}
	if err := c.Set(context.Background(), "lock:{sku:mug}", "ann", 0).Err(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Del(ctx, "lock:{sku:mug}").Err() }()
	if seen := until(t, r, "a", Stopped); !server.Exists("lock:{sku:mug}") || seen.Next != "redis DEL lock:{sku:mug}" {
		t.Errorf("got next %q, key there: %v, want it there before DEL", seen.Next, server.Exists("lock:{sku:mug}"))
	}
	if err := errors.Join(r.Do(ctx, Step, "a"), <-done); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(context.Background(), "lock:{sku:mug2}").Err(); !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	go func() { done <- c.Set(ctx, "lock:{sku:mug}", "bob", 0).Err() }()
	until(t, r, "a", Stopped)
	if err := r.Do(ctx, Die, "a"); err != nil {
		t.Fatal(err)
	}
	_, err := c.Pipelined(context.Background(), func(p redis.Pipeliner) error {
		p.Set(t.Context(), "lock:{sku:mug}", "bob", 0)
		return p.Set(t.Context(), "other", "1", 0).Err()
	})
	if first := <-done; server.Exists("lock:{sku:mug}") || !server.Exists("other") || ctx.Err() == nil {
		t.Errorf("got %v and %v, keys %q, want a dead request to send nothing, and others to", first, err, server.Keys())
	}
	trace.End()
	want := []string{
		"step begun = ", "redis SET lock:{sku:mug} ann = OK", "redis DEL lock:{sku:mug} = 1", "stop dies = ",
	}
	if got := lines(until(t, r, "a", Ended)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// "What a batch does for several requests is recorded for each, and stops once for each that is stepped." "A request
// that has died sends nothing more, and its transaction is rolled back. The requests that shared a batch with it also
// die, and so do all requests that were recorded in its process and had not ended."
func TestRecorder_batch(t *testing.T) {
	t.Parallel()
	r := new(Recorder)
	server, c := recordedRedis(t, r)
	_, ended := begin(t, r, "ended")
	ended.End()
	ann, _ := begin(t, r, "a")
	bob, _ := begin(t, r, "b")
	apart, _ := begin(t, r, "apart")
	batch := Share(t.Context(), []context.Context{bob, ann, t.Context()})
	done := make(chan error, 1)
	go func() { done <- c.Incr(batch, "n").Err() }()
	for _, name := range []string{"b", "a"} {
		if seen := until(t, r, name, Stopped); seen.Next != "redis INCR n" || server.Exists("n") {
			t.Errorf("%s: got next %q, sent: %v", name, seen.Next, server.Exists("n"))
		}
		if err := r.Do(t.Context(), Step, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	go func() { done <- c.Incr(batch, "n").Err() }()
	until(t, r, "b", Stopped)
	if err := r.Do(t.Context(), Die, "a"); err != nil {
		t.Fatal(err)
	}
	also := c.Incr(apart, "n").Err()
	if n, _ := server.Get("n"); !errors.Is(<-done, ErrDied) || !errors.Is(also, ErrDied) || n != "1" {
		t.Errorf("got n %s and %v, want nothing sent by a process that has died", n, also)
	}
	want := []string{"step begun = ", "redis INCR n = 1", "stop dies = "}
	for name, want := range map[string][]string{"a": want, "b": want, "apart": {want[0], want[2]}, "ended": want[:1]} {
		if seen, err := r.Look(t.Context(), name, 0); err != nil || !slices.Equal(lines(seen), want) {
			t.Errorf("%s: got %q, %v, want %q", name, lines(seen), err, want)
		}
	}
}

// "It ends by a Move, with the context of the step": by the move where both come before the request has noticed either,
// as when it dies, which ends its context.
func TestRecorder_diesAtOnce(t *testing.T) {
	t.Parallel()
	r := new(Recorder)
	for i := range 20 {
		name := fmt.Sprint("a", i)
		ctx, trace := begin(t, r, name)
		trace.stop(&dyingContext{ctx, func() {
			if seen := until(t, r, name, Stopped); r.Do(ctx, Die, name) != nil {
				t.Errorf("got %+v, want it to die", seen)
			}
		}, 0}, "redis GET key")
		trace.End()
		if got := lines(until(t, r, name, Ended)); !slices.Equal(got, []string{"step begun = ", "stop dies = "}) {
			t.Errorf("got %q, want it to die and nothing more", got)
		}
	}
}

// dyingContext dies when its end is looked at for the second time: while the request has stopped.
type dyingContext struct {
	context.Context
	die   func()
	looks int
}

func (c *dyingContext) Done() <-chan struct{} {
	if c.looks++; c.looks == 2 {
		c.die()
	}
	return c.Context.Done()
}

// A request stops before "a statement about the stock, a BEGIN or COMMIT". When it dies, "its
// transaction is rolled back".
func TestRecorder_database(t *testing.T) {
	t.Parallel()
	r := new(Recorder)
	s, err := store.SQLite(t.Context(), filepath.Join(t.TempDir(), "shop.db"), store.Options{Through: r.Database(sql.OpenDB)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pool := s.DB()
	if _, err := pool.ExecContext(t.Context(), "CREATE TABLE skus (n INTEGER); CREATE TABLE t (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	insert := func(ctx context.Context) error {
		tx, err := pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO `t` (n) VALUES (?)", 1)
		_, also := tx.ExecContext(ctx, "UPDATE `skus` SET n = ?", 1)
		return errors.Join(err, also, tx.Commit())
	}
	count := func() (n int) {
		if err := pool.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, c := range []struct {
		last Move
		rows int
	}{{Die, 0}, {Step, 1}} {
		name := fmt.Sprint("a-", i)
		ctx, trace := begin(t, r, name)
		done := make(chan error, 1)
		go func() { done <- insert(ctx) }()
		for _, next := range []string{"BEGIN", "UPDATE skus SET n = 1", "COMMIT"} {
			if seen := until(t, r, name, Stopped); seen.Next != "sql "+next || count() != 0 {
				t.Errorf("got next %q and %d rows, want %s and none before COMMIT", seen.Next, count(), next)
			}
			move := Step
			if next == "COMMIT" {
				move = c.last
			}
			if err := r.Do(t.Context(), move, name); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; (err == nil) != (c.rows == 1) || count() != c.rows {
			t.Errorf("%s: got %v and %d rows, want %d", c.last, err, count(), c.rows)
		}
		trace.End()
	}
	want := []string{"step begun = ", "sql BEGIN = OK", "sql INSERT INTO t = 1 row", "sql UPDATE skus SET n = 1 = 0 rows", "sql COMMIT = OK"}
	if got := lines(until(t, r, "a-1", Ended)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Commands of a lock in ZooKeeper are known by the SKU in their path, and owners' names are cut.
func TestRecorder_zooKeeper(t *testing.T) {
	t.Parallel()
	r := new(Recorder)
	_, trace := begin(t, r, "a", "mug")
	trace.End()
	const owner = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	r.ZooKeeper("create", "/locks/sku:mug/"+owner+"-", owner+"-0000000001")
	r.ZooKeeper("children", "/locks/sku:mug2", "")
	want := []string{"step begun = ", "zookeeper create /locks/sku:mug/ABCDEF…- = ABCDEF…-0000000001"}
	if got := lines(until(t, r, "a", Ended)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// "It ends by a Move, with the context of the step, or after Longest, which is recorded."
func TestTrace_stopEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := new(Recorder)
		ctx, trace := begin(t, r, "a")
		began := time.Now()
		trace.stop(ctx, "sql BEGIN")
		if took := time.Since(began); took != Longest {
			t.Errorf("stopped for %v, want %v", took, Longest)
		}
		if seen := until(t, r, "a", Running); !strings.Contains(strings.Join(lines(seen), ";"), "goes on by itself") {
			t.Errorf("got %q, want it recorded", lines(seen))
		}
		ctx, trace = begin(t, r, "b")
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { defer close(done); trace.stop(ctx, "sql BEGIN") }()
		until(t, r, "b", Stopped)
		cancel()
		<-done
		if seen := until(t, r, "b", Running); !strings.Contains(strings.Join(lines(seen), ";"), "its context has ended") {
			t.Errorf("got %q, want why it goes on", lines(seen))
		}
		if err := r.Do(t.Context(), Resume, "b"); err != nil {
			t.Fatal(err)
		}
		trace.stop(t.Context(), "sql BEGIN") // returns at once
		trace.End()
	})
}

// "Let the locks that it has asked for last run out": a right one and a wrong one, but not one that has no end.
func TestTrace_expire(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	right := lock.New(lock.NewRedis(c), lock.Options{})
	t.Cleanup(func() { _ = right.Close() })
	lockers := WrongLocks(c, LockOptions{TTL: time.Second, MaxWait: time.Minute})
	lockers["redis"] = strategy.LockerOf(right)
	r := new(Recorder)
	for _, name := range []string{"redis", "setex", "get-then-del"} {
		ctx, trace := begin(t, r, name)
		if err := r.Do(ctx, Resume, name); err != nil {
			t.Fatal(err)
		}
		if err := r.Do(ctx, Expire, name); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: it has asked for no lock: got %v, want ErrInvalid", name, err)
		}
		if _, err := Locker(lockers[name]).AcquireAll(ctx, "sku:mug"); err != nil {
			t.Fatal(err)
		}
		if err := r.Do(ctx, Expire, name); err != nil {
			t.Fatal(err)
		}
		if _, err := lockers[name].AcquireAll(t.Context(), "sku:mug"); err != nil {
			t.Errorf("%s: the lock has run out: got %v", name, err)
		}
		if lines := lines(until(t, r, name, Running)); lines[len(lines)-1] != "stop the lock runs out = " {
			t.Errorf("got %q", lines)
		}
		trace.End()
	}
	ctx, trace := begin(t, r, "a")
	defer trace.End()
	if err := r.Do(ctx, Resume, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := Locker(lockers["setnx-expire"]).AcquireAll(ctx, "sku:mug"); err != nil {
		t.Fatal(err)
	}
	if err := c.Persist(ctx, "wrong:setnx-expire:sku:mug").Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Do(ctx, Expire, "a"); err != nil || !server.Exists("wrong:setnx-expire:sku:mug") {
		t.Errorf("got %v, want a lock without a TTL to stay", err)
	}
}

func TestRecorder_Begin_refuses(t *testing.T) {
	t.Parallel()
	r := new(Recorder)
	begin(t, r, "taken")
	if _, _, err := r.Begin(t.Context(), "taken", nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	for i := range maxRecordings { // "keeps the latest"
		begin(t, r, fmt.Sprint("a-", i))
	}
	if _, err := r.Look(t.Context(), "taken", 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("the oldest: got %v, want ErrNotFound", err)
	}
	if err := r.Do(t.Context(), Resume, "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if err := r.Do(t.Context(), "leap", "a-1"); !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

func TestStatementText(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"/*! x */ SELECT /*+ y */ `a`,`b` FROM `skus`\n WHERE name = 1": "SELECT … FROM skus WHERE name = 1",
		"INSERT INTO `orders` (`id`) VALUES (1)":                        "INSERT INTO orders",
		"UPDATE `skus` SET `available`=0 WHERE id = 1":                  "UPDATE skus SET available=0 WHERE id = 1",
	} {
		if got := statementText(query, nil); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}
