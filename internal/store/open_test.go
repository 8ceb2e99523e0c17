package store_test

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

// "An invalid DSN" is an error at once, which names the setting. "No error shows the password."
func TestMySQL_refusesDSN(t *testing.T) {
	t.Parallel()
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	const form = "user:password@tcp(host:port)/database"
	for _, c := range []struct {
		dsn     string
		options store.Options
		want    string
	}{
		{"", store.Options{}, form},
		{"shop:s3cret@tcp(db:3306)", store.Options{}, form},
		{"shop:s3cret@tcp(db:3306)/?parseTime=true", store.Options{}, form},
		{"shop:s3cret@db:3306/shop", store.Options{}, form},
		{"shop:s3c/ret@tcp(db:3306)", store.Options{}, form},
		{"shop:s3cret@tcp(db:3306/shop", store.Options{}, form},
		{"mysql://shop:s3cret@db:3306/shop", store.Options{}, form},
		{"shop:s3cret@smoke(db:3306)/shop", store.Options{}, form},
		{"shop:s3cret@tcp(db:3306)/shop?timeout=5", store.Options{}, "parameter"},
		{"shop:s3cret@tcp(db:3306)/shop?tls=s3cret", store.Options{}, "parameter"},
		{"shop:s3cret@tcp(db:3306)/shop?tls=preferred", store.Options{}, "parameter tls=preferred"},
		{"shop:s3cret@tcp(db:3306)/shop?tls=skip-verify", store.Options{}, "parameter tls=skip-verify"},
		{"shop:s3cret@tcp(db:3306)/shop?tls=true&allowFallbackToPlaintext=true", store.Options{}, "allows plaintext"},
		{"shop:s3cret@tcp(db)/shop?tls=false", store.Options{TLS: secure}, "tls=false"},
		{"shop:s3cret@unix(/run/mysqld)/shop", store.Options{TLS: secure}, "socket"},
	} {
		_, err := store.MySQL(t.Context(), c.dsn, c.options)
		if err == nil || !strings.HasPrefix(err.Error(), "database settings: mysql DSN: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want an error of the settings that says %q", c.dsn, err, c.want)
		}
		for _, secret := range []string{"s3c", "ret@"} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%q: got %q, which shows the password", c.dsn, err)
			}
		}
	}
}

// "Until ctx ends, it waits for a server that does not answer." Then the error says which address did not answer, for
// how long, and why. An answer such as access denied, and others, "are errors at once". "No error shows the password."
func TestMySQL_waits(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	t.Cleanup(cancel)
	const address = "127.0.0.1:1" // nothing listens there
	_, err := store.MySQL(ctx, "shop:s3cret@tcp("+address+")/shop", store.Options{})
	for _, part := range []string{address, "did not answer for", "refused", "check that it runs"} {
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %q, want it to say %q, and no password", err, part)
		}
	}
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		var refusals atomic.Int64
		refusals.Store(3)
		kind.New(t, "").Through(t, func(statement string) testserver.Fate {
			if statement == "CONNECT" && refusals.Add(-1) >= 0 {
				return testserver.Drop
			}
			return testserver.Pass
		}).Open(t)
		if left := refusals.Load(); left >= 0 {
			t.Errorf("opened with %d refusals left", left)
		}
	})
	for name, dsn := range map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB} {
		t.Run(name+" answers", func(t *testing.T) {
			t.Parallel()
			for what, damage := range map[string]func(*mysql.Config){
				"password": func(c *mysql.Config) { c.Passwd = "s3cret" },
				"database": func(c *mysql.Config) { c.DBName = "nowhere" },
				"variable": func(c *mysql.Config) { c.Params = map[string]string{"parsetime": "1"} }, // a typing error
			} {
				config, err := mysql.ParseDSN(dsn(t))
				testserver.Must(t, err)
				damage(config)
				_, err = store.MySQL(t.Context(), config.FormatDSN(), store.Options{}) // waiting would hang
				if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), config.Addr) {
					t.Errorf("wrong %s: got %v, want an error that names %s and no password", what, err, config.Addr)
				}
			}
		})
	}
}

// Settings that would change what a statement means arrive on each connection, whatever the DSN says; the user's lock
// wait wins.
func TestMySQL_session(t *testing.T) {
	t.Parallel()
	const users = "innodb_lock_wait_timeout=7&autocommit=0&SQL_MODE=%27%27&time_zone=SYSTEM&parseTime=false&loc=Local" +
		"&clientFoundRows=false&charset=gbk" +
		"&sql_select_limit=1&unique_checks=0&max_sort_length=64"
	limits := map[string]string{"MySQL": "max_execution_time", "MariaDB": "max_statement_time"} // only one of the two knows each
	storetest.EachServer(t, func(t *testing.T, kind storetest.Kind) {
		database := kind.New(t, users+"&"+limits[kind.Name]+"=1")
		s := database.Open(t)
		got := texts(t, s, `SELECT CONCAT_WS(' ', @@time_zone, @@character_set_client, @@innodb_lock_wait_timeout,
			@@lock_wait_timeout, @@wait_timeout, @@unique_checks = 1,
			@@max_sort_length, FIND_IN_SET('STRICT_ALL_TABLES', @@sql_mode) > 0, @@`+limits[kind.Name]+` = 0)`)
		if want := "+00:00 utf8mb4 7 5 2 1 1024 1 1"; got[0] != want {
			t.Errorf("got %s, want %s", got[0], want)
		}
		storetest.Exec(t, s, "CREATE TABLE words (word VARCHAR(3))", "INSERT INTO words VALUES ('abc')")
		if _, err := s.DB().ExecContext(t.Context(), "INSERT INTO words VALUES (?)", "abcd"); err == nil {
			t.Error(`"Text is never cut": VARCHAR(3) took four letters`)
		}
		same, err := s.DB().ExecContext(t.Context(), "UPDATE words SET word = 'abc'")
		testserver.Must(t, err)
		if n, err := same.RowsAffected(); n != 1 || err != nil {
			t.Errorf(`"0 means that nothing matched": an update to the same value affected %d rows (%v)`, n, err)
		}
		if got := texts(t, database.Open(t), "SELECT word FROM words"); len(got) != 1 {
			t.Errorf("got %v: a statement by itself is not committed", got)
		}
		const odd = `'"\` + "`" // bound values are quoted by the driver
		if back := texts(t, s, "SELECT ?", odd); len(back) != 1 || back[0] != odd {
			t.Errorf("got %q back, want %q", back, odd)
		}
	})
}

func openFile(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.SQLite(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// "In a URI, the path may have any character." "It is created with mode 0600 [...]. The files that SQLite keeps beside
// it get the same mode", even in a folder that every user may read.
func TestSQLite_files(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"shop.db", "a b.db", "what?.db", "100%.db", "%41.db", "a#b&c=d;e.db", "ü.db", `quote's"s.db`, "file:x.db", "a+b.db",
	} {
		dir := t.TempDir()
		testserver.Must(t, os.Chmod(dir, 0o755))
		s := openFile(t, filepath.Join(dir, name))
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 3 || left[0].Name() != name {
			t.Errorf("%q: got files %v (%v), want the database, its log and its index", name, left, err)
		}
		for _, file := range left {
			if info, err := file.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: got mode %v, %v, want 0600", file.Name(), info.Mode(), err)
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("%q: close: %v", name, err)
		}
	}
}

// "A long read makes the file of the journal grow": after the read, the file shrinks again.
func TestSQLite_journalShrinks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	s := openFile(t, path)
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		testserver.Must(t, err)
		return info.Size()
	}
	storetest.Exec(t, s, "CREATE TABLE rows (text BLOB)", "INSERT INTO rows VALUES ('')")
	reader, err := s.DB().BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	testserver.Must(t, err)
	testserver.Must(t, reader.QueryRowContext(t.Context(), "SELECT text FROM rows").Scan(new([]byte)))
	const write = "UPDATE rows SET text = RANDOMBLOB(5000000)"
	storetest.Exec(t, s, write, write, write, write, write)
	if got := size(); got < 20_000_000 {
		t.Errorf("got a journal of %d bytes during the read", got)
	}
	testserver.Must(t, reader.Rollback())
	storetest.Exec(t, s, write, write)
	if got := size(); got > 16<<20 {
		t.Errorf("got a journal of %d bytes after the read, want at most 16 MiB", got)
	}
}

func TestSQLite_refusesPath(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing", "shop.db")
	text := filepath.Join(t.TempDir(), "text.db")
	testserver.Must(t, os.WriteFile(text, []byte(strings.Repeat("no database ", 100)), 0o600))
	for _, path := range []string{missing, text} { // at once: waiting would hang
		if _, err := store.SQLite(t.Context(), path, store.Options{}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want an error that names %s", err, path)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.SQLite(ended, filepath.Join(t.TempDir(), "shop.db"), store.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: got %v, want context.Canceled", err)
	}
}

// "Version returns the product and its version." "Now returns the time by the database's clock, in
// UTC." Name says which database it is, without a password.
func TestStore_knowsItsDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := kind.New(t, "").Open(t)
		got, err := s.Version(t.Context())
		if want := regexp.MustCompile(`^` + kind.Name + ` \d+\.\d+\.\d+$`); err != nil || !want.MatchString(got) {
			t.Errorf("got %q, %v, want %v", got, err, want)
		}
		now, err := s.Now(t.Context())
		if off := time.Since(now).Abs(); err != nil || off > time.Minute || now.Location() != time.UTC {
			t.Errorf("got %v, %v, want now, in UTC", now, err)
		}
		if s.IsSQLite() == kind.Server || !strings.Contains(s.Name(), map[bool]string{true: "mysql at ", false: "sqlite file "}[kind.Server]) {
			t.Errorf("got SQLite %v, name %q", s.IsSQLite(), s.Name())
		}
	})
}
