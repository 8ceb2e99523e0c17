package store_test

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

func mustExec(t *testing.T, db *gorm.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if err := db.Exec(statement).Error; err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// files is how many migrations there are.
func files(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func wantPending(t *testing.T, db *gorm.DB, want bool) {
	t.Helper()
	if got, err := store.Pending(t.Context(), db); err != nil || got != want {
		t.Errorf("pending: got %v, %v, want %v", got, err, want)
	}
}

// "Migrate applies the migrations that the database lacks and returns how many."
// "Pending reports whether the database lacks a migration. It only reads."
func TestMigrate(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		db := kind.New(t, "").Open(t)
		wantPending(t, db, true)
		wantPending(t, db, true) // the first did not create anything
		for _, want := range []int{files(t), 0} {
			if got, err := store.Migrate(t.Context(), db); err != nil || got != want {
				t.Errorf("migrate: got %d, %v, want %d", got, err, want)
			}
			wantPending(t, db, false)
		}
		mustExec(t, db, "DELETE FROM goose_db_version WHERE version_id = (SELECT n FROM (SELECT MAX(version_id) AS n FROM goose_db_version) AS latest)")
		wantPending(t, db, true)
	})
}

// "Several may run at once, from several processes: one migrates, the others
// wait and find nothing to do."
func TestMigrate_atOnce(t *testing.T) {
	t.Parallel()
	const processes = 4
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, "")
		var applied atomic.Int64
		var all sync.WaitGroup
		for range processes {
			db := database.Open(t)
			all.Go(func() {
				n, err := store.Migrate(t.Context(), db)
				if err != nil {
					t.Errorf("migrate: %v", err)
				}
				applied.Add(int64(n))
			})
		}
		all.Wait()
		if got, want := applied.Load(), int64(files(t)); got != want {
			t.Errorf("applied: got %d together, want %d", got, want)
		}
		wantPending(t, database.Open(t), false)
	})
}

// "A database that is ahead of the program lacks nothing."
func TestMigrate_databaseIsAhead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		mustExec(t, db, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, TRUE)")
		wantPending(t, db, false)
		if got, err := store.Migrate(t.Context(), db); err != nil || got != 0 {
			t.Errorf("migrate: got %d, %v, want 0", got, err)
		}
	})
}

// "Text compares byte by byte everywhere, trailing spaces included", also in a
// database that was created with another collation.
func TestMigrate_textComparesByBytes(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		db := kind.New(t, "").Open(t)
		if kind.Server {
			mustExec(t, db, "ALTER DATABASE CHARACTER SET latin1 COLLATE latin1_swedish_ci")
		}
		if _, err := store.Migrate(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		want := []string{" abc", "ABC", "abc", "abc ", "abç", "äbc"}
		for _, key := range want {
			err := db.Exec("INSERT INTO idempotency_keys VALUES ('ann', ?, 'f', 'o', '2026-01-01 00:00:00.000000')", key).Error
			if err != nil {
				t.Errorf("key %q: %v", key, err)
			}
			var found []string
			if err := db.Raw("SELECT idempotency_key FROM idempotency_keys WHERE buyer = 'ann' AND idempotency_key = ?", key).Scan(&found).Error; err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{key}, found); diff != "" {
				t.Errorf("found for %q (-want +got):\n%s", key, diff)
			}
		}
		var sorted []string
		if err := db.Raw("SELECT idempotency_key FROM idempotency_keys ORDER BY idempotency_key").Scan(&sorted).Error; err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, sorted); diff != "" {
			t.Errorf("sorted (-want +got):\n%s", diff)
		}
	})
}

// No table was forgotten.
func TestMigrate_allTablesCompareByBytes(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		if _, err := store.Migrate(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		var others []string
		err := db.Raw(`SELECT CONCAT(table_name, '.', column_name, ' ', collation_name) FROM information_schema.columns
			WHERE table_schema = DATABASE() AND table_name <> 'goose_db_version' AND collation_name IS NOT NULL
			AND collation_name NOT IN ('utf8mb4_0900_bin', 'utf8mb4_nopad_bin')`).Scan(&others).Error
		if err != nil {
			t.Fatal(err)
		}
		if len(others) > 0 {
			t.Errorf("columns with another collation: %v", others)
		}
	})
}
