package testserver_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/testserver"
)

// opened fails the test where a server cannot be started, and closes it when the test ends.
func opened[S io.Closer](t *testing.T, open func(context.Context) (S, error)) S {
	t.Helper()
	s, err := open(t.Context())
	testserver.Must(t, err)
	t.Cleanup(func() { testserver.Must(t, s.Close()) })
	return s
}

// Whatever members are lost, Rejoin brings the group back, with each commit that was acknowledged.
func TestMySQLGroup(t *testing.T) {
	t.Parallel()
	g := testserver.StartMySQLGroup(t)
	_, err := g.DSN(t.Context(), "shop")
	testserver.Must(t, err)
	primary := func() *testserver.Server {
		t.Helper()
		p, err := g.Primary(t.Context())
		testserver.Must(t, err)
		return p
	}
	testserver.Must(t, primary().SQL(t.Context(), "CREATE TABLE shop.x (n INT PRIMARY KEY)"))
	do := func(s *testserver.Server, faults ...testserver.Fault) {
		t.Helper()
		for _, f := range faults {
			testserver.Must(t, s.Do(t.Context(), f))
		}
	}
	others := func(p *testserver.Server) []*testserver.Server {
		return slices.DeleteFunc(slices.Clone(g.Members), func(s *testserver.Server) bool { return s == p })
	}
	replaced := func(p *testserver.Server) {
		t.Helper()
		testserver.Until(t, "another member is the primary", time.Minute, func() bool { return primary() != p })
	}
	for n, lose := range []func(p *testserver.Server){
		func(p *testserver.Server) { do(p, testserver.Kill, testserver.Restart) },
		func(p *testserver.Server) {
			do(p, testserver.Isolate)
			replaced(p)
			testserver.Must(t, p.SQL(t.Context(), "DO 1")) // it is still reached
			do(p, testserver.Reconnect)
		},
		func(p *testserver.Server) {
			for _, s := range others(p) {
				do(s, testserver.Kill)
			}
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := p.SQL(short, "INSERT INTO shop.x VALUES (1000)"); err == nil {
				t.Error("a primary without a majority commits")
			}
			for _, s := range others(p) {
				do(s, testserver.Restart)
			}
		},
	} {
		p := primary()
		testserver.Must(t, p.SQL(t.Context(), "INSERT INTO shop.x VALUES ("+string(rune('0'+n))+")"))
		lose(p)
		began := time.Now()
		testserver.Must(t, g.Rejoin(t.Context()))
		t.Logf("loss %d: rejoined after %v", n, time.Since(began))
		// A row that is not there makes NULL, which cannot be inserted.
		testserver.Must(t, primary().SQL(t.Context(), "INSERT INTO shop.x SELECT -MAX(n) - 1 FROM shop.x WHERE n = "+string(rune('0'+n))))
	}
}

// A replica that is held has not what the source has acknowledged, and takes writes when it is promoted.
func TestMySQLReplicas(t *testing.T) {
	t.Parallel()
	for name, semiSync := range map[string]bool{"asynchronous": false, "semi-synchronous": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := opened(t, func(ctx context.Context) (*testserver.MySQLReplicas, error) {
				return testserver.OpenMySQLReplicas(ctx, semiSync)
			})
			_, err := r.DSN(t.Context(), "shop")
			testserver.Must(t, err)
			source, replica := r.Servers[0], r.Servers[1]
			testserver.Must(t, source.SQL(t.Context(), "CREATE TABLE shop.x (n INT PRIMARY KEY)", "INSERT INTO shop.x VALUES (1)"))
			testserver.Until(t, "the replica has the row", time.Minute, func() bool {
				return replica.Query(t.Context(), "SELECT n FROM shop.x", new(int)) == nil
			})
			if semiSync {
				var state string
				err := source.Query(t.Context(), "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Rpl_semi_sync_source_status'", &state)
				if state != "ON" {
					t.Errorf("the source does not wait for its replica: %q, %v", state, err)
				}
			}
			if err := replica.SQL(t.Context(), "INSERT INTO shop.x VALUES (2)"); err == nil {
				t.Error("the replica takes writes")
			}
			testserver.Must(t, replica.SQL(t.Context(), "STOP REPLICA IO_THREAD"))
			testserver.Must(t, source.SQL(t.Context(), "INSERT INTO shop.x VALUES (2)"))
			testserver.Must(t, source.Do(t.Context(), testserver.Kill))
			testserver.Must(t, r.Promote(t.Context()))
			testserver.Must(t, replica.SQL(t.Context(), "INSERT INTO shop.x VALUES (2)")) // is not there
			testserver.Must(t, source.Do(t.Context(), testserver.Restart))
			if err := source.SQL(t.Context(), "INSERT INTO shop.x VALUES (3)"); err == nil {
				t.Error("the old source takes writes after a restart")
			}
		})
	}
}

// A full disk is an error that ends when there is room again.
func TestMySQLSmallDisk(t *testing.T) {
	t.Parallel()
	s := opened(t, testserver.OpenMySQLSmallDisk)
	_, err := s.NewSchema(t.Context(), "shop")
	testserver.Must(t, err)
	testserver.Must(t, s.SQL(t.Context(), "CREATE TABLE shop.x (n INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(8000))"))
	insert := func() error { return s.SQL(t.Context(), "INSERT INTO shop.x (v) VALUES (REPEAT('v', 8000))") }
	testserver.Must(t, s.FillDisk(t.Context()))
	testserver.Until(t, "the disk is full", time.Minute, func() bool { return insert() != nil })
	testserver.Must(t, s.FreeDisk(t.Context()))
	testserver.Must(t, insert())
}

// A master that is lost with what its replicas had not received is replaced, again and again.
func TestRedisSentinel(t *testing.T) {
	t.Parallel()
	g := testserver.StartRedisSentinel(t)
	options := &redis.FailoverOptions{MasterName: testserver.SentinelMaster, SentinelAddrs: g.Addrs[3:], MaxRetries: 20}
	for range 2 {
		rdb := redis.NewFailoverClient(options)
		testserver.Must(t, rdb.Set(t.Context(), "known", 1, 0).Err())
		testserver.Must(t, rdb.Do(t.Context(), "WAIT", 2, 10_000).Err())
		testserver.Must(t, g.CutReplicas(t.Context()))
		testserver.Must(t, rdb.Set(t.Context(), "unknown", 1, 0).Err())
		testserver.Must(t, g.FailOver(t.Context()))
		testserver.Must(t, rdb.Close())
		rdb = redis.NewFailoverClient(options)
		if n, err := rdb.Exists(t.Context(), "known", "unknown").Result(); n != 1 || err != nil {
			t.Errorf("the new master has %d of the keys, %v, want the one from before it was cut off", n, err)
		}
		testserver.Must(t, rdb.Close())
		testserver.Must(t, g.Restore(t.Context()))
	}
}

func TestRedisClock(t *testing.T) {
	t.Parallel()
	s := opened(t, testserver.OpenRedisClock)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	for _, offset := range []time.Duration{0, time.Hour, -time.Hour, 0} {
		testserver.Must(t, s.SetClock(t.Context(), offset))
		now, err := rdb.Time(t.Context()).Result()
		if off := time.Until(now) - offset; err != nil || off.Abs() > time.Minute {
			t.Errorf("with %v got %v, %v", offset, now, err)
		}
	}
}
