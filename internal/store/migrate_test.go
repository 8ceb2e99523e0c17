package store_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

// files is how many migrations there are.
const files = 3

func wantPending(t *testing.T, s *store.Store, want bool) {
	t.Helper()
	if got, err := s.Pending(t.Context()); err != nil || got != want {
		t.Errorf("pending: got %v, %v, want %v", got, err, want)
	}
}

// "Migrate applies the migrations that the database lacks, and returns their number." "Pending reports whether the
// database lacks a migration of this program. It only reads [...]. A database that is ahead of the program lacks none."
func TestStore_Migrate(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := kind.New(t, "").Open(t)
		wantPending(t, s, true)
		wantPending(t, s, true) // the first did not create anything
		for _, want := range []int{files, 0} {
			if got, err := s.Migrate(t.Context()); err != nil || got != want {
				t.Errorf("migrate: got %d, %v, want %d", got, err, want)
			}
			wantPending(t, s, false)
		}
		storetest.Exec(t, s, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, TRUE)")
		wantPending(t, s, false)
		if got, err := s.Migrate(t.Context()); err != nil || got != 0 {
			t.Errorf("migrate a database that is ahead: got %d, %v, want 0", got, err)
		}
		storetest.Exec(t, s, "DELETE FROM goose_db_version WHERE version_id > 0")
		wantPending(t, s, true)
	})
}

// "Several processes may migrate a server at once: one applies the migrations; the others wait, a
// minute at most, and find nothing to do."
func TestStore_Migrate_atOnce(t *testing.T) {
	t.Parallel()
	const processes = 4
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "")
		var applied atomic.Int64
		var all sync.WaitGroup
		for range processes {
			s := database.Open(t)
			all.Go(func() {
				n, err := s.Migrate(t.Context())
				if err != nil {
					t.Errorf("migrate: %v", err)
				}
				applied.Add(int64(n))
			})
		}
		all.Wait()
		if got := applied.Load(); got != files {
			t.Errorf("applied: got %d together, want %d", got, files)
		}
		wantPending(t, database.Open(t), false)
	})
}

// "The end of ctx does not interrupt a migration".
func TestStore_Migrate_interrupted(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		ctx, interrupt := context.WithCancel(t.Context())
		s := kind.New(t, "").Through(t, at("CREATE TABLE IF NOT EXISTS skus", testserver.Pass, interrupt)).Open(t)
		if got, err := s.Migrate(ctx); err != nil || got != files || ctx.Err() == nil {
			t.Errorf("got %d, %v, want %d; interrupted: %v", got, err, files, ctx.Err())
		}
	})
}

// "An interrupted migration can be run again": the migration is interrupted after each statement, and
// in the end the schema is the same as without a crash.
func TestStore_Migrate_afterACrash(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		changesNothing := regexp.MustCompile(`^(SELECT |SET |PING$|CONNECT$)`)
		var seen sync.Map
		var lost atomic.Int64
		database := kind.New(t, "")
		s := database.Through(t, func(statement string) testserver.Fate { // loses the answer to each that changes something once
			if _, again := seen.LoadOrStore(statement, true); again || changesNothing.MatchString(statement) {
				return testserver.Pass
			}
			lost.Add(1)
			return testserver.Mute
		}).Open(t)
		for err := errors.New("not begun"); err != nil; {
			before := lost.Load()
			_, err = s.Migrate(t.Context())
			if lost := lost.Load() - before; (err != nil) != (lost == 1) {
				t.Fatalf("migrate: got %v, with %d answers lost", err, lost)
			}
		}
		if lost.Load() < 10 { // tables, and rows of versions
			t.Errorf("%d answers were lost, want more", lost.Load())
		}
		if diff := cmp.Diff(schemaOf(t, kind.New(t, "").Migrated(t)), schemaOf(t, database.Open(t))); diff != "" {
			t.Errorf("schema (-without a crash +after crashes):\n%s", diff)
		}
	})
}

// schemaOf returns how each table can be created, and which migrations are done.
func schemaOf(t *testing.T, s *store.Store) (schema []string) {
	t.Helper()
	tables := texts(t, s, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND "+
		"table_name <> 'goose_db_version' ORDER BY table_name")
	for _, table := range tables {
		var name, create string
		testserver.Must(t, s.DB().QueryRowContext(t.Context(), "SHOW CREATE TABLE "+table).Scan(&name, &create))
		schema = append(schema, create)
	}
	return append(schema, fmt.Sprint(texts(t, s, "SELECT version_id FROM goose_db_version ORDER BY version_id")))
}

func texts(t *testing.T, s *store.Store, query string, args ...any) (found []string) {
	t.Helper()
	rows, err := s.DB().QueryContext(t.Context(), query, args...)
	testserver.Must(t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		testserver.Must(t, rows.Scan(&text))
		found = append(found, text)
	}
	testserver.Must(t, rows.Err())
	return found
}

// "After two seconds, Migrate gives up, and leaves no statement on the server": behind a transaction that has read a
// table. An order that waits behind the migration is placed. The error names the session. "It can be repeated".
func TestStore_Migrate_tableInUse(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "wait_timeout=60")
		s := newShop(t, database.Migrated(t), 10, "mug")
		storetest.Exec(t, s.Store, "ALTER TABLE orders DROP COLUMN first_expiry", "DELETE FROM goose_db_version WHERE version_id = 3")
		reader, err := s.DB().BeginTx(t.Context(), nil)
		testserver.Must(t, err)
		var session string
		var orders int
		testserver.Must(t, reader.QueryRowContext(t.Context(), "SELECT CONNECTION_ID(), COUNT(*) FROM orders").Scan(&session, &orders))
		var waiting sync.WaitGroup
		orderBehind := sync.OnceFunc(func() { waiting.Go(func() { s.mustPlace(t, draft("ann", "k1", "mug")) }) })
		migrating := database.Through(t, at("EXECUTE", testserver.Pass, orderBehind)).Open(t)
		_, err = migrating.Migrate(t.Context())
		if !errors.Is(err, store.ErrTableInUse) || !strings.Contains(err.Error(), "session "+session+" of root at ") {
			t.Errorf("got %v, want an ErrTableInUse that names session %s", err, session)
		}
		waiting.Wait()
		if left := texts(t, s.Store,
			"SELECT info FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'ALTER%'"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		testserver.Must(t, reader.Rollback())
		if got, err := migrating.Migrate(t.Context()); err != nil || got != 1 {
			t.Errorf("afterwards: got %d, %v, want 1", got, err)
		}
		s.wantRows(t, rows{Orders: 1, Lines: 1, Movements: 2, Keys: 1})
	})
}

// When their tables are made, what buyers have of a SKU that has a limit already is counted, and orders that are paid
// already get a payment.
func TestStore_Migrate_fillsTables(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newShop(t, st, 10, "mug", "hat")
		s.mustPlace(t, draft("ann", "k1", "mug", "hat"), draft("ann", "k2", "mug"), draft("bob", "k1", "mug"))
		zoe := draft("zoe", "k1", "hat")
		s.mustPlace(t, zoe)
		storetest.Exec(t, st, "UPDATE orders SET status = 'paid' WHERE buyer = 'zoe'",
			"UPDATE skus SET reserved = 2, sold = 2 WHERE name = 'hat'",
			"INSERT INTO movements SELECT sku, REPLACE(id, '-7', '-8'), 'sell', order_id, 0, 0, -reserved, reserved, 0, "+
				"created_at FROM movements WHERE order_id = '"+zoe.ID+"'",
			"UPDATE skus SET limit_per_buyer = 5 WHERE name = 'mug'",
			"DROP TABLE buyer_units", "DROP TABLE payments", "ALTER TABLE orders DROP COLUMN first_expiry",
			"DELETE FROM goose_db_version WHERE version_id > 1")
		if got, err := s.Migrate(t.Context()); err != nil || got != 2 {
			t.Errorf("migrate: got %d, %v, want 2", got, err)
		}
		if got := texts(t, st, "SELECT units FROM buyer_units ORDER BY units"); !slices.Equal(got, []string{"2", "4"}) {
			t.Errorf("got %v, want the units of bob and ann", got)
		}
		s.wantClean(t)
	})
}

// "Text compares byte by byte, including trailing spaces", in every table, even if the database was
// created with another collation.
func TestStore_Migrate_textComparesByBytes(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := kind.New(t, "").Open(t)
		if kind.Server {
			storetest.Exec(t, s, "ALTER DATABASE CHARACTER SET latin1 COLLATE latin1_swedish_ci")
		}
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{" abc", "ABC", "abc", "abc ", "abç", "äbc"}
		for _, key := range want {
			storetest.Exec(t, s, "INSERT INTO idempotency_keys VALUES ('ann', '"+key+"', 'f', 'o', '2026-01-01 00:00:00.000000')")
			found := texts(t, s, "SELECT idempotency_key FROM idempotency_keys WHERE buyer = 'ann' AND idempotency_key = ?", key)
			if diff := cmp.Diff([]string{key}, found); diff != "" {
				t.Errorf("found for %q (-want +got):\n%s", key, diff)
			}
		}
		if diff := cmp.Diff(want, texts(t, s, "SELECT idempotency_key FROM idempotency_keys ORDER BY idempotency_key")); diff != "" {
			t.Errorf("sorted (-want +got):\n%s", diff)
		}
		if !kind.Server {
			return
		}
		others := texts(t, s, `SELECT CONCAT(table_name, '.', column_name, ' ', collation_name) FROM information_schema.columns
			WHERE table_schema = DATABASE() AND table_name <> 'goose_db_version' AND collation_name IS NOT NULL
			AND collation_name NOT IN ('utf8mb4_0900_bin', 'utf8mb4_nopad_bin')`)
		if len(others) > 0 {
			t.Errorf("columns with another collation: %v", others)
		}
	})
}

// "A database with tables of another program is refused before it is changed."
func TestStore_Migrate_foreign(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := kind.New(t, "").Open(t)
		storetest.Exec(t, s, "CREATE TABLE orders (id INT PRIMARY KEY, customer INT)")
		for range 2 { // the first leaves no trace
			_, migrated := s.Migrate(t.Context())
			_, pending := s.Pending(t.Context())
			for _, err := range []error{migrated, pending} {
				if err == nil || !strings.Contains(err.Error(), "its table orders is not the shop's") {
					t.Errorf("got %v, want the name of the table in it", err)
				}
			}
		}
	})
}
