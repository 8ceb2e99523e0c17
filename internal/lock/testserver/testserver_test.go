package testserver_test

import (
	"database/sql"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"example.com/shop/internal/lock/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

func TestRedis(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: testserver.Redis(t)})
	defer func() { _ = rdb.Close() }()
	if err := rdb.Set(t.Context(), "k:"+t.Name(), "v", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := rdb.Get(t.Context(), "k:"+t.Name()).Result(); got != "v" || err != nil {
		t.Fatalf("got %q, %v; want v", got, err)
	}
	if got, want := testserver.Redis(t), rdb.Options().Addr; got != want {
		t.Errorf("a second call started another server: got %s, want %s", got, want)
	}
}

func TestMySQL(t *testing.T) {
	t.Parallel()
	version := testSchema(t, testserver.MySQL)
	if strings.Contains(version, "MariaDB") && strings.HasPrefix(os.Getenv("SHOP_TEST_MYSQL_IMAGE"), "mysql") {
		t.Errorf("got version %s, want a MySQL", version)
	}
}

func TestMariaDB(t *testing.T) {
	t.Parallel()
	if version := testSchema(t, testserver.MariaDB); !strings.Contains(version, "MariaDB") {
		t.Errorf("got version %s, want a MariaDB", version)
	}
}

// testSchema tests what the DSN promises: an empty schema, strings compared by bytes, times parsed as UTC, and two calls
// are two schemas.
func testSchema(t *testing.T, server func(testing.TB) string) (version string) {
	t.Helper()
	dsn := server(t)
	if other := server(t); other == dsn {
		t.Fatalf("two calls gave the same schema: %s", dsn)
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, statement := range []string{
		"CREATE TABLE x (name VARCHAR(20) PRIMARY KEY, at DATETIME(6) NOT NULL)",
		"INSERT INTO x VALUES ('sku', UTC_TIMESTAMP(6)), ('SKU', UTC_TIMESTAMP(6)), ('skü 🙂', UTC_TIMESTAMP(6))",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	var at time.Time
	row := db.QueryRowContext(t.Context(), "SELECT at, VERSION() FROM x WHERE name = ?", "skü 🙂")
	if err := row.Scan(&at, &version); err != nil {
		t.Fatal(err)
	}
	if off := time.Since(at).Abs(); at.Location() != time.UTC || off > time.Minute {
		t.Errorf("got time %v, want now in UTC", at)
	}
	return version
}

func TestServer_Faults(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	hasty := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, ReadTimeout: 200 * time.Millisecond})
	defer func() { _ = hasty.Close() }()
	server.Pause(t)
	if err := hasty.Ping(t.Context()).Err(); err == nil {
		t.Error("a paused server answered")
	}
	server.Unpause(t)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("after unpause: %v", err)
	}
	server.Kill(t)
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Error("a killed server answered")
	}
	addr := server.Addr()
	server.Restart(t)
	if server.Addr() != addr {
		t.Errorf("got address %s after a restart, want %s", server.Addr(), addr)
	}
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("after restart: %v", err)
	}
}

// A port that somebody else has for a moment is waited for.
func TestServer_RestartPortTaken(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	server.Kill(t)
	var listener net.Listener
	for listener == nil { // Docker may give it back a little later
		var err error
		if listener, err = net.Listen("tcp", server.Addr()); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
	time.AfterFunc(500*time.Millisecond, func() { _ = listener.Close() })
	server.Restart(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

// A killed MySQL keeps what was committed.
func TestServer_DurableAfterKill(t *testing.T) {
	t.Parallel()
	server := testserver.StartMySQL(t)
	db, err := sql.Open("mysql", server.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, statement := range []string{"CREATE TABLE x (n INT PRIMARY KEY)", "INSERT INTO x VALUES (7)"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	server.Kill(t)
	server.Restart(t)
	var got int
	if err := db.QueryRowContext(t.Context(), "SELECT n FROM x").Scan(&got); got != 7 || err != nil {
		t.Fatalf("got %d, %v; want 7", got, err)
	}
}
