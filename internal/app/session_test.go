package app_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/testserver"
)

// A shop is the same whatever a server's global settings are: "session sets the variables that the meaning of the
// shop's statements depends on, because a server, its init_connect or a user may have changed them".
func TestShop_hostileServer(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]struct {
		open     func(context.Context) (*testserver.Server, error)
		settings []string
	}{
		"MySQL": {testserver.OpenMySQL, []string{"transaction_isolation = 'SERIALIZABLE'", "transaction_read_only = 1",
			"range_optimizer_max_mem_size = 1"}},
		"MariaDB": {testserver.OpenMariaDB, []string{"tx_isolation = 'SERIALIZABLE'", "tx_read_only = 1",
			"check_constraint_checks = 0", "innodb_snapshot_isolation = 1", "sql_if_exists = 1", "in_predicate_conversion_threshold = 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := testserver.Start(t, server.open)
			for _, setting := range append(server.settings,
				"sql_select_limit = 1", "sql_safe_updates = 1", "completion_type = 1", "completion_type = 2", "autocommit = 0",
				"max_join_size = 1", "sql_auto_is_null = 1", "unique_checks = 0", "max_sort_length = 4", "time_zone = '+13:00'",
				"sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH'", "sql_mode = ''", "character_set_server = 'latin1'",
				"default_storage_engine = 'MyISAM'", "innodb_default_row_format = 'compact'", "group_concat_max_len = 4", "wait_timeout = 1",
			) {
				t.Run(setting, func(t *testing.T) {
					dsn := database.DSN(t)
					testserver.Must(t, database.SQL(t.Context(), "SET GLOBAL "+setting))
					defer func() {
						variable, _, _ := strings.Cut(setting, " ")
						testserver.Must(t, database.SQL(t.Context(), "SET GLOBAL "+variable+" = DEFAULT"))
					}()
					wantLife(t, database, dsn)
				})
			}
		})
	}
}

// wantLife has a shop sell a cart, take it back, take a delivery in, purge a key, and find what was tampered with.
func wantLife(t *testing.T, database *testserver.Server, dsn string) {
	t.Helper()
	s := embedded(t, 5)
	s.Data, s.MySQL = "", dsn
	supply(t, s, 5)
	_, schema, _ := strings.Cut(dsn, ")/")
	schema, _, _ = strings.Cut(schema, "?")
	testserver.Must(t, database.SQL(t.Context(),
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
		"SET autocommit = 1, sql_safe_updates = 0, sql_mode = ''", "USE "+schema,
		"INSERT INTO idempotency_keys VALUES ('ann', 'old', 'of', 'no order', '2020-01-01 00:00:00')"))
	log := &testserver.LogBuffer{}
	s.Log = slog.New(slog.NewTextHandler(log, nil))
	shop := start(t, s)
	operator := func(method, path, body string) answer {
		return operate(shop, method, path, body, "Idempotency-Key: key-1")
	}
	operator(http.MethodPost, "/v1/skus", `{"sku":"cup","units":5,"price":{"minor":100,"currency":"EUR"}}`).Want(t, http.StatusCreated)
	buyer := func(path, key, body string) answer {
		return call(t, http.MethodPost, shop.URL()+path, body, as(t, "ann"), "Content-Type: application/json", "Idempotency-Key: "+key)
	}
	var order struct{ ID string }
	const cart = `{"lines":[{"sku":"cup","quantity":2},{"sku":"mug","quantity":1}]}`
	buyer("/v1/orders", "cart", cart).Want(t, http.StatusCreated).Decode(t, &order)
	buyer("/v1/orders", "cart", cart).Want(t, http.StatusCreated) // a replay
	buyer("/v1/orders/"+order.ID+"/cancel", "cancel", "").Want(t, http.StatusOK)
	w := operator(http.MethodPost, "/v1/skus/mug/movements", `{"kind":"supply","units":2}`).Want(t, http.StatusCreated)
	if !strings.Contains(w.Body, `"supplied":7,"available":7,"reserved":0`) {
		t.Errorf("got %s, want 7 available", w.Body)
	}
	testserver.Until(t, "keys are purged", 30*time.Second, func() bool { return log.Has(`msg="job ran" job=keys items=1`) })
	if w := operator(http.MethodGet, "/v1/audit", "").Want(t, http.StatusOK); !strings.Contains(w.Body, `"ok":true`) {
		t.Errorf("got audit %s, want ok", w.Body)
	}
	testserver.Must(t, database.SQL(t.Context(),
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE", "SET autocommit = 1, sql_safe_updates = 0", "USE "+schema,
		"UPDATE skus SET sold = 1", "DELETE FROM order_lines"))
	w = operator(http.MethodGet, "/v1/audit", "").Want(t, http.StatusOK)
	if got := strings.Count(w.Body, `"invariant"`); got != 11 {
		t.Errorf("got %d differences, want 11: %s", got, w.Body)
	}
}
