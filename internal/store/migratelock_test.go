package store_test

import (
	"database/sql"
	"testing"

	"example.com/shop/internal/store"
)

// "A transaction whose client vanished without a word is rolled back by the server
// after 90 s", also on the connections that a migration leaves in the pool.
func TestMigrate_leavesNoPatientConnection(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		if _, err := store.Migrate(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		conns, err := db.DB()
		if err != nil {
			t.Fatal(err)
		}
		var held []*sql.Conn
		for range conns.Stats().Idle {
			conn, err := conns.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, conn)
		}
		if len(held) == 0 {
			t.Fatal("the migration has left no connection to look at")
		}
		for _, conn := range held {
			var seconds int
			if err := conn.QueryRowContext(t.Context(), "SELECT @@wait_timeout").Scan(&seconds); err != nil || seconds != 90 {
				t.Errorf("got wait_timeout %d, %v, want 90", seconds, err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
