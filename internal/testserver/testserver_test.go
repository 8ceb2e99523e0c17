package testserver_test

import (
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

// What the DSN promises: an empty schema, strings compared by bytes, times parsed as UTC, and two calls are two
// schemas.
func TestSchema(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
			var version string
			row := db.QueryRowContext(t.Context(), "SELECT at, VERSION() FROM x WHERE name = ?", "skü 🙂")
			if err := row.Scan(&at, &version); err != nil {
				t.Fatal(err)
			}
			if off := time.Since(at).Abs(); at.Location() != time.UTC || off > time.Minute {
				t.Errorf("got time %v, want now in UTC", at)
			}
			official := name == "MariaDB" || os.Getenv("SHOP_TEST_MYSQL_IMAGE") == ""
			if official && strings.Contains(version, "MariaDB") != (name == "MariaDB") {
				t.Errorf("got version %s, want a %s", version, name)
			}
		})
	}
}
