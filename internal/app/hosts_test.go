package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// failoverLimit is for an election, on a machine that has better to do: it takes about seven seconds.
const failoverLimit = time.Minute

// groupSales buys without a pause, as several buyers, and keeps the orders that were acknowledged.
type groupSales struct {
	t    *testing.T
	shop *app.Shop
	stop func()
	over <-chan struct{}
	all  sync.WaitGroup

	mu     sync.Mutex
	ids    []string
	last   time.Time      // of an acknowledged order
	gap    time.Duration  // the longest between two
	failed map[string]int // problems, by type
}

func sell(t *testing.T, shop *app.Shop, buyers int) *groupSales {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &groupSales{t: t, shop: shop, stop: stop, over: ctx.Done(), last: time.Now(), failed: map[string]int{}}
	for buyer := range buyers {
		s.all.Go(func() {
			for n := 0; ctx.Err() == nil && !t.Failed(); n++ {
				s.buy(fmt.Sprintf("key-%d-%d", buyer, n), fmt.Sprintf("Shop-Buyer: buyer-%d", buyer))
			}
		})
	}
	t.Cleanup(func() { s.end() })
	return s
}

// buy sends a request again until it is acknowledged. Any other answer has to be a 503 that is safe to repeat: nobody is
// refused for lack of a primary.
func (s *groupSales) buy(key, buyer string) {
	for {
		a := buy(s.t, s.shop, key, buyer)
		var got struct {
			ID, Type  string
			RetrySafe bool `json:"retry_safe"`
		}
		if err := json.Unmarshal([]byte(a.body), &got); err != nil {
			s.t.Errorf("%s: got %d %s, %v", key, a.status, a.body, a.err)
			return
		}
		s.mu.Lock()
		if a.status == http.StatusCreated {
			s.ids = append(s.ids, got.ID)
			s.gap, s.last = max(s.gap, time.Since(s.last)), time.Now()
			s.mu.Unlock()
			return
		}
		s.failed[got.Type]++
		s.mu.Unlock()
		if a.status != http.StatusServiceUnavailable || !got.RetrySafe {
			s.t.Errorf("%s: got %d %s, want 503 that may be repeated", key, a.status, a.body)
			return
		}
		select {
		case <-time.After(50 * time.Millisecond): // a polite client would wait for Retry-After
		case <-s.over:
			return
		}
	}
}

func (s *groupSales) sold() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids)
}

// goOn waits until n more orders are acknowledged, and reports the longest time without one.
func (s *groupSales) goOn(n int, after string) {
	s.t.Helper()
	want := s.sold() + n
	testserver.Until(s.t, after+": sales go on", failoverLimit, func() bool { return s.sold() >= want })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Logf("%s: %v without a sale; problems %v", after, s.gap.Round(10*time.Millisecond), s.failed)
	s.gap, s.last, s.failed = 0, time.Now(), map[string]int{}
}

// end stops the buyers and returns the orders that were acknowledged.
func (s *groupSales) end() []string {
	s.stop()
	s.all.Wait()
	return s.ids
}

// "--mysql takes several hosts and finds the writable one": a shop sells through a planned change of the primary, a
// paused one that comes back, and a killed one. Nothing that was acknowledged is lost, and no buyer is refused. A primary
// without a majority is not chosen.
func TestShop_mysqlGroup(t *testing.T) {
	t.Parallel()
	group := testserver.StartMySQLGroup(t)
	s := embedded(t, 1)
	dsn, err := group.DSN(t.Context(), "shop")
	testserver.Must(t, err)
	s.Data, s.MySQL = "", dsn
	withOperator(t, &s)
	s.LockWait = s.LockTTL + time.Second
	supply(t, s, 1_000_000)
	wantGrant(t, s, group.Members[0])
	shop := start(t, s)
	primary := func() *testserver.Server {
		t.Helper()
		var ready struct{ Primary string }
		var found *testserver.Server
		testserver.Until(t, "/readyz names a primary", failoverLimit, func() bool {
			a := call(t, http.MethodGet, shop.URL()+"/readyz", "")
			_ = json.Unmarshal([]byte(a.body), &ready)
			for _, m := range group.Members {
				if m.Addr() == ready.Primary {
					found = m
				}
			}
			return a.status == http.StatusOK && found != nil
		})
		return found
	}
	sales := sell(t, shop, 8)
	sales.goOn(20, "at the start")
	first := primary()

	testserver.Must(t, first.SQL(t.Context(), "SELECT group_replication_set_as_primary((SELECT MEMBER_ID FROM performance_schema.replication_group_members WHERE MEMBER_ROLE <> 'PRIMARY' LIMIT 1))"))
	sales.goOn(20, "primary changed as planned")
	second := primary()
	if second == first {
		t.Errorf("the primary is still %s", first)
	}

	testserver.Must(t, second.Do(t.Context(), testserver.Pause))
	sales.goOn(20, "primary paused")
	testserver.Must(t, second.Do(t.Context(), testserver.Unpause)) // it takes itself for the primary until it hears from the others
	sales.goOn(100, "paused primary goes on")
	if primary() == second {
		t.Errorf("%s is the primary again", second)
	}
	third := primary()
	testserver.Must(t, group.Rejoin(t.Context())) // the other was expelled
	testserver.Must(t, third.Do(t.Context(), testserver.Kill))
	sales.goOn(20, "primary killed")
	if metrics := scrape(t, shop); !regexp.MustCompile(`\nshop_database_primary_changes_total [3-9]\n`).MatchString(metrics) ||
		!strings.Contains(metrics, fmt.Sprintf("\nshop_database_primary{host=%q} 1\n", primary().Addr())) {
		t.Errorf("got metrics\n%s\nwant three changes, and the primary %s", metrics, primary().Addr())
	}
	ids := sales.end()
	wantAudit(t, shop, int64(len(ids)))
	wantOrders(t, s, ids)

	wantNoMajority(t, shop, group, primary(), third)
}

// wantGrant fails unless a user needs the right that docs/operations.md names.
func wantGrant(t *testing.T, s app.Settings, primary *testserver.Server) {
	t.Helper()
	const grant = "GRANT SELECT ON performance_schema.replication_group_members"
	_, at, _ := strings.Cut(s.MySQL, "@")
	s.MySQL = "shop:geheim@" + at
	testserver.Must(t, primary.SQL(t.Context(), "CREATE USER shop@'%' IDENTIFIED BY 'geheim'", "GRANT ALL ON shop.* TO shop@'%'"))
	if _, err := app.OpenDatabase(t.Context(), s.DatabaseSettings); err == nil || !strings.Contains(err.Error(), grant) ||
		strings.Contains(err.Error(), "did not answer") || strings.Contains(err.Error(), "geheim") {
		t.Errorf("got %v, want that the user needs %s, at once", err, grant)
	}
	testserver.Must(t, primary.SQL(t.Context(), grant+" TO shop@'%'"))
	database, err := app.OpenDatabase(t.Context(), s.DatabaseSettings)
	if err != nil {
		t.Fatalf("with the right: %v", err)
	}
	_ = database.Close()
}

// wantOrders fails unless each order exists.
func wantOrders(t *testing.T, s app.Settings, ids []string) {
	t.Helper()
	database, err := app.OpenDatabase(t.Context(), s.DatabaseSettings)
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	rows, err := database.DB().QueryContext(t.Context(), "SELECT id FROM orders")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		found[id] = true
	}
	for _, id := range ids {
		if !found[id] {
			t.Errorf("order %s was acknowledged and is not there", id)
		}
	}
	if err := rows.Err(); err != nil || len(found) != len(ids) {
		t.Errorf("got %d orders, %v, want %d", len(found), err, len(ids))
	}
}

// wantNoMajority kills the members other than the primary, but for one that is dead already. A commit waits there for
// ever; the buyer does not.
func wantNoMajority(t *testing.T, shop *app.Shop, group *testserver.MySQLGroup, primary, dead *testserver.Server) {
	t.Helper()
	for _, m := range group.Members {
		if m != primary && m != dead {
			testserver.Must(t, m.Do(t.Context(), testserver.Kill))
		}
	}
	waiting := make(chan answer, 1)
	go func() { waiting <- buy(t, shop, "waits", "Shop-Buyer: ann") }()
	testserver.Until(t, "/readyz says why", failoverLimit, func() bool {
		a := call(t, http.MethodGet, shop.URL()+"/readyz", "")
		return a.status == http.StatusServiceUnavailable && strings.Contains(a.body, primary.Addr()+": it has no majority: it reaches 1 of 2 members")
	})
	began := time.Now()
	for _, a := range []answer{buy(t, shop, "too late", "Shop-Buyer: ben"), <-waiting} {
		if a.want(t, http.StatusServiceUnavailable); !strings.Contains(a.body, `"retry_safe":true`) {
			t.Errorf("got %s, want an answer that may be repeated", a.body)
		}
	}
	if took := time.Since(began); took > 30*time.Second { // the deadline of a request is later
		t.Errorf("got the answers after %v", took)
	}
}

// untilSold buys as a buyer whose requests are counted, again until the order is acknowledged.
func untilSold(t *testing.T, shop *app.Shop, key string) {
	t.Helper()
	testserver.Until(t, key+" is sold", failoverLimit, func() bool {
		return buy(t, shop, key, as(t, "ann")).status == http.StatusCreated
	})
}

// "master_name in the query means Sentinel": locks and rate limits follow the master.
func TestShop_redisSentinel(t *testing.T) {
	t.Parallel()
	group := testserver.StartRedisSentinel(t)
	s := operated(t)
	s.Redis = group.URL()
	shop := start(t, s)
	buy(t, shop, "key-1", as(t, "ann")).want(t, http.StatusCreated)
	testserver.Must(t, group.FailOver(t.Context()))
	untilSold(t, shop, "key-2")
	untilReady(t, shop)
}

// "Several addr mean Cluster; a one-seed cluster is told by a word of ours."
func TestShop_redisCluster(t *testing.T) {
	t.Parallel()
	group := testserver.StartRedisCluster(t)
	for name, url := range map[string]string{
		"one node": fmt.Sprintf("redis://%s?cluster=true", group.Addrs[0]),
		"nodes":    fmt.Sprintf("redis://%s?addr=%s&addr=%s", closedPort, group.Addrs[1], group.Addrs[2]),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := operated(t)
			s.Redis = url
			shop := start(t, s)
			untilReady(t, shop)
			for n := range 5 { // their buyers' keys are in different slots
				buy(t, shop, "key", as(t, fmt.Sprintf("buyer-%d", n))).want(t, http.StatusCreated)
			}
		})
	}
}
