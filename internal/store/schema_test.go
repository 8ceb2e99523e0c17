package store_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

// "CheckSchema compares the columns of an up-to-date database with those that the migrations make, and returns an error
// that names the first table that differs. Further indexes, and columns that an INSERT may leave out, do no harm."
func TestStore_CheckSchema(t *testing.T) {
	t.Parallel()
	const remedy = "ALTER TABLE orders CONVERT TO CHARACTER SET utf8mb4 COLLATE "
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		cases := map[string]string{ // what is done to the schema, and what is said of it
			"ALTER TABLE orders RENAME COLUMN buyer TO customer":          "table orders is not as the shop makes it: column buyer: want VARCHAR(64) NOT NULL, got none that the user may see",
			"ALTER TABLE buyers RENAME TO away":                           "table buyers is not as the shop makes it: column buyer: want VARCHAR(64) NOT NULL PRIMARY KEY, got none that the user may see",
			"ALTER TABLE orders ADD COLUMN note VARCHAR(9) NULL":          "",
			"ALTER TABLE orders ADD COLUMN shop INT NOT NULL DEFAULT 7":   "",
			"CREATE INDEX orders_by_time ON orders (created_at)":          "",
			"CREATE TABLE customers (id INT NOT NULL PRIMARY KEY, n INT)": "",
		}
		if kind.Server {
			for statement, want := range map[string]string{
				remedy + "utf8mb4_general_ci": "table orders is not as the shop makes it: column id: want VARCHAR(36) NOT NULL PRIMARY KEY, got VARCHAR(36) NOT NULL PRIMARY KEY, compared not byte by byte but by utf8mb4_general_ci: " + remedy,
				remedy + "utf8mb4_bin":        "compared not byte by byte but by utf8mb4_bin", // it pads
				"ALTER TABLE skus MODIFY currency CHAR(3) CHARACTER SET latin1 NOT NULL": "table skus is not as the shop makes it: column currency: want CHAR(3) NOT NULL, got CHAR(3) NOT NULL, compared not byte by byte but by latin1_swedish_ci",
				"ALTER TABLE job_runs ENGINE = MyISAM":                                   "table job_runs is not as the shop makes it: column job: want VARCHAR(64) NOT NULL PRIMARY KEY, got VARCHAR(64) NOT NULL PRIMARY KEY, not in InnoDB but MyISAM",
				"ALTER TABLE movements MODIFY order_id VARCHAR(30) NULL":                 "table movements is not as the shop makes it: column order_id: want VARCHAR(36) NULL, got VARCHAR(30) NULL",
				"ALTER TABLE deliveries MODIFY supplied BIGINT UNSIGNED NOT NULL":        "column supplied: want BIGINT NOT NULL, got BIGINT",
				"ALTER TABLE job_runs DROP PRIMARY KEY":                                  "column job: want VARCHAR(64) NOT NULL PRIMARY KEY, got VARCHAR(64) NOT NULL",
				"ALTER TABLE orders ADD COLUMN customer INT NOT NULL":                    "column customer needs a value",
			} {
				cases[statement] = want
			}
		}
		for statement, want := range cases {
			database := kind.New(t, "")
			s := database.Migrated(t)
			storetest.Exec(t, s, statement)
			err := s.CheckSchema(t.Context())
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: got %v, want %q", statement, err, want)
			}
			if _, again := s.Migrate(t.Context()); fmt.Sprint(again) != fmt.Sprint(err) {
				t.Errorf("%s: migrate: got %v, want %v", statement, again, err)
			}
			if _, mend, ok := strings.Cut(fmt.Sprint(err), "general_ci: "); ok {
				mend, _, _ = strings.Cut(mend, ",")
				storetest.Exec(t, s, mend)
				if err := s.CheckSchema(t.Context()); err != nil {
					t.Errorf("%s, and then %s: got %v", statement, mend, err)
				}
			}
		}
	})
}

// "A database whose tables are another program's is refused, before it is changed where that is known by then."
func TestStore_Migrate_foreign(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := kind.New(t, "").Open(t)
		storetest.Exec(t, s, "CREATE TABLE orders (id INT PRIMARY KEY, customer INT)")
		for range 2 {
			if _, err := s.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "its table orders is not the shop's") {
				t.Errorf("got %v, want that it names the table", err)
			}
		}
		if _, err := s.Pending(t.Context()); err == nil || !strings.Contains(err.Error(), "its table orders is not the shop's") {
			t.Errorf("pending: got %v, want that it names the table", err)
		}
		storetest.Exec(t, s, "CREATE TABLE skus (id INT)") // there was none
		s = kind.New(t, "").Open(t)
		storetest.Exec(t, s, "CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id BIGINT, is_applied BOOLEAN, tstamp DATETIME DEFAULT CURRENT_TIMESTAMP)", // of a program that uses goose
			"INSERT INTO goose_db_version VALUES (2, 1, TRUE, NULL)")
		if _, err := s.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "table skus is not as the shop makes it: column name: want VARCHAR(64) NOT NULL PRIMARY KEY, got none") {
			t.Errorf("got %v, want that it names the table", err)
		}
	})
}

// "The largest is a batch of orders with the longest names and keys."
func TestMySQL_largestStatement(t *testing.T) {
	t.Parallel()
	const orders = 256 // in a batch
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		var largest atomic.Int64
		database, sku := kind.New(t, ""), strings.Repeat("m", 64)
		newShop(t, database.Migrated(t), 10_000, sku)
		s := shop{database.Through(t, func(statement string) testserver.Fate {
			largest.Store(max(largest.Load(), int64(len(statement)))) // one connection is used
			return testserver.Pass
		}).Open(t)}
		var drafts []*order.Draft
		var keys []order.BuyerKey
		for i := range orders {
			d := draft(fmt.Sprintf("%064d", i), strings.Repeat("'", 255), sku)
			drafts, keys = append(drafts, d), append(keys, order.BuyerKey{Buyer: d.Buyer, Key: d.Key})
		}
		if err := s.place(t.Context(), drafts...); err != nil {
			t.Fatal(err)
		}
		if found, err := s.UsedKeys(t.Context(), keys...); len(found) != orders || err != nil {
			t.Fatalf("got %d keys, %v", len(found), err)
		}
		if got := largest.Load(); got < 100_000 || got > 1<<20 {
			t.Errorf("got %d bytes, want at most %d", got, 1<<20)
		}
	})
}
