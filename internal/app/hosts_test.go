package app_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// failoverLimit is the time limit for an election on a busy machine. An election takes about seven seconds.
const failoverLimit = time.Minute

// A shop on a group needs a right, sells through a planned change of the primary, and says why there is none. What it
// sells while members are killed, paused and cut off is for go run ./loadtest faults.
func TestShop_mysqlGroup(t *testing.T) {
	t.Parallel()
	group := testserver.Start(t, testserver.OpenMySQLGroup)
	s := embedded(t, 1)
	dsn, err := group.Servers[0].NewSchema(t.Context(), "shop", group.Servers[1:]...)
	testserver.Must(t, err)
	s.Data, s.MySQL = "", dsn
	supply(t, s, 5)
	first := group.Servers[0]
	wantGrant(t, s, first)
	shop := start(t, s)
	buy(t, shop, "key-1").Want(t, http.StatusCreated)

	testserver.Must(t, first.SQL(t.Context(),
		"SELECT group_replication_set_as_primary((SELECT MEMBER_ID FROM performance_schema.replication_group_members "+
			"WHERE MEMBER_ROLE <> 'PRIMARY' LIMIT 1))"))
	primary, err := group.Primary(t.Context())
	testserver.Must(t, err)
	testserver.Until(t, "sales go on", failoverLimit, func() bool { return buy(t, shop, "key-2").Status == http.StatusCreated })
	wantAudit(t, shop, 2)
	if a := call(t, http.MethodGet, shop.URL()+"/readyz", ""); primary == first ||
		!strings.Contains(a.Body, fmt.Sprintf(`"primary":%q`, primary.Addr())) {
		t.Errorf("got %s, want another primary than %s: %s", a.Body, first, primary)
	}
	if metrics := scrape(t, shop); !regexp.MustCompile(`\nshop_database_primary_changes_total [1-9]\n`).MatchString(metrics) ||
		!strings.Contains(metrics, fmt.Sprintf("\nshop_database_primary{host=%q} 1\n", primary.Addr())) {
		t.Errorf("got metrics\n%s\nwant a change, and the primary %s", metrics, primary)
	}
	wantNoMajority(t, shop, group, primary)
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
		t.Errorf("got %v, want an error at once that the user needs %s", err, grant)
	}
	testserver.Must(t, primary.SQL(t.Context(), grant+" TO shop@'%'"))
	database, err := app.OpenDatabase(t.Context(), s.DatabaseSettings)
	if err != nil {
		t.Fatalf("with the right: %v", err)
	}
	_ = database.Close()
}

// wantNoMajority kills the members other than the primary. A commit waits there for ever; the buyer does not.
func wantNoMajority(t *testing.T, shop *app.Shop, group *testserver.MySQLGroup, primary *testserver.Server) {
	t.Helper()
	for _, m := range group.Servers {
		if m != primary {
			testserver.Must(t, m.Do(t.Context(), testserver.Kill))
		}
	}
	const readers = 64 // more than the pool has connections
	waiting := make(chan answer, 4+readers)
	go func() { waiting <- buy(t, shop, "waits") }()
	// Reads on this primary do not wait. But a row that it lacks may exist on another primary.
	go func() {
		waiting <- call(t, http.MethodPost, shop.URL()+"/v1/orders", `{"lines":[{"sku":"pen","quantity":1}]}`,
			"Content-Type: application/json", "Idempotency-Key: pen")
	}()
	go func() {
		waiting <- call(t, http.MethodGet, shop.URL()+"/v1/orders/01900000-0000-7000-8000-000000000000", "")
	}()
	go func() { waiting <- call(t, http.MethodGet, shop.URL()+"/v1/skus/pen", "") }()
	testserver.Until(t, "/readyz says why", failoverLimit, func() bool {
		a := call(t, http.MethodGet, shop.URL()+"/readyz", "")
		return a.Status == http.StatusServiceUnavailable && strings.Contains(a.Body, primary.Addr()+": it has no majority: it reaches 1 of ")
	})
	began := time.Now()
	for range readers {
		go func() {
			waiting <- call(t, http.MethodGet, shop.URL()+"/v1/orders/01900000-0000-7000-8000-000000000000", "")
		}()
	}
	answers := []answer{buy(t, shop, "too late")}
	for range 4 + readers {
		answers = append(answers, <-waiting)
	}
	for _, a := range answers {
		if a.Want(t, http.StatusServiceUnavailable); !strings.Contains(a.Body, `"retry_safe":true`) {
			t.Errorf("got %s, want an answer that may be repeated", a.Body)
		}
	}
	if took := time.Since(began); took > 30*time.Second { // the deadline of a request is later
		t.Errorf("got the answers after %v", took)
	}
}

// "With ?addr=HOST:PORT or ?cluster=true for a Cluster", by a user who has the documented permissions.
func TestShop_redisCluster(t *testing.T) {
	t.Parallel()
	group := testserver.Start(t, testserver.OpenRedisCluster)
	for _, addr := range group.Addrs {
		admin := redis.NewClient(&redis.Options{Addr: addr})
		grantRights(t, admin, "+cluster|slots +command +asking")
		t.Cleanup(func() {
			wantNothingRefused(t, admin)
			_ = admin.Close()
		})
	}
	for name, url := range map[string]string{
		"one node": fmt.Sprintf("redis://shop:secret@%s?cluster=true", group.Addrs[0]),
		"nodes":    fmt.Sprintf("redis://shop:secret@%s?addr=%s&addr=%s", closedPort, group.Addrs[1], group.Addrs[2]),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := embedded(t, 5)
			s.Redis = url
			shop := start(t, s)
			untilReady(t, shop)
			for n := range 5 { // their buyers' keys are in different slots
				buy(t, shop, "key", as(t, fmt.Sprintf("buyer-%d", n))).Want(t, http.StatusCreated)
			}
		})
	}
}
