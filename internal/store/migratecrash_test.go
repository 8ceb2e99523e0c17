package store_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// cutAfterEach loses the answer to each statement that may change something, the
// first time that it comes, and nothing else.
type cutAfterEach struct {
	mu   sync.Mutex
	seen map[string]bool
}

var changesNothing = regexp.MustCompile(`^(SELECT|SET) `)

func (c *cutAfterEach) judge(statement string) storetest.Fate {
	statement = strings.TrimSpace(statement)
	c.mu.Lock()
	defer c.mu.Unlock()
	if changesNothing.MatchString(statement) || c.seen[statement] {
		return storetest.Pass
	}
	c.seen[statement] = true
	return storetest.Mute
}

func (c *cutAfterEach) cuts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// "A file whose run was killed is run again, whatever has taken effect": after each
// statement of each file, the next migration goes on, and in the end the schema is
// that of a migration without a crash.
func TestMigrate_afterACrash(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		cutter := &cutAfterEach{seen: map[string]bool{}}
		database := kind.New(t, "")
		db := database.Through(t, &storetest.Proxy{Judge: cutter.judge}).Open(t)
		for {
			before := cutter.cuts()
			_, err := store.Migrate(t.Context(), db)
			if cut := cutter.cuts() - before; (err != nil) != (cut == 1) {
				t.Fatalf("migrate: got %v, with %d answers lost", err, cut)
			}
			if err == nil {
				break
			}
		}
		// The table of migrations, its first row, and at least a statement and a row a file.
		if got, want := cutter.cuts(), 2+2*files(t); got < want {
			t.Errorf("%d answers were lost, want %d at least", got, want)
		}
		if diff := cmp.Diff(schemaOf(t, kind.New(t, "").Migrated(t)), schemaOf(t, database.Open(t))); diff != "" {
			t.Errorf("schema (-without a crash +after crashes):\n%s", diff)
		}
	})
}

// schemaOf tells how each table can be created, and which migrations are done.
func schemaOf(t *testing.T, db *gorm.DB) (schema []string) {
	t.Helper()
	var tables []string
	if err := db.Raw("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name <> 'goose_db_version' ORDER BY table_name").Scan(&tables).Error; err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		var name, create string
		if err := db.Raw("SHOW CREATE TABLE "+table).Row().Scan(&name, &create); err != nil {
			t.Fatal(err)
		}
		schema = append(schema, create)
	}
	var versions []int
	if err := db.Raw("SELECT version_id FROM goose_db_version ORDER BY version_id").Scan(&versions).Error; err != nil {
		t.Fatal(err)
	}
	return append(schema, fmt.Sprint(versions))
}

// "On a server what has begun is finished, whatever becomes of ctx", and however long
// the server lets a connection be idle while another one is busy.
func TestMigrate_finishesWhatHasBegun(t *testing.T) {
	t.Parallel()
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		long := func() {
			interrupt()
			<-time.After(2 * time.Second)
		}
		database := kind.New(t, "wait_timeout=1") // second
		db := database.Through(t, at("CREATE INDEX orders_of_buyer ", storetest.Pass, long)).Open(t)
		if got, err := store.Migrate(ctx, db); err != nil || got != files(t) || ctx.Err() == nil {
			t.Errorf("migrate: got %d, %v, interrupted: %v; want %d", got, err, ctx.Err(), files(t))
		}
		wantPending(t, db, false)
	})
}
