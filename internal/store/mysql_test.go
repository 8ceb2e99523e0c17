package store_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// "A server that is not up yet is waited for."
func TestMySQL_waitsForTheServer(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, dsn string) {
		var refusals atomic.Int64
		refusals.Store(3)
		p := &storetest.Proxy{Refuse: func() bool { return refusals.Add(-1) >= 0 }}
		open(t, p.Through(t, dsn))
		if left := refusals.Load(); left >= 0 {
			t.Errorf("opened with %d refusals left", left)
		}
	})
}

// "Until ctx ends": the error says which address did not answer, for how long,
// and why.
func TestMySQL_givesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
	defer cancel()
	const address = "127.0.0.1:1" // nobody listens there
	_, err := store.MySQL(ctx, "shop:s3cret@tcp("+address+")/shop", store.Pool{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want context.DeadlineExceeded", err)
	}
	for _, part := range []string{address, "did not answer for", "refused", "check that it runs"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, want it to say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %q, which shows the password", err)
	}
}

// "An answer such as 'access denied' is an error at once. No error shows the
// password."
func TestMySQL_definiteAnswers(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, dsn string) {
		for name, damage := range map[string]func(*mysql.Config){
			"password": func(c *mysql.Config) { c.Passwd = "s3cret" },
			"database": func(c *mysql.Config) { c.DBName = "nowhere" },
			"variable": func(c *mysql.Config) { c.Params = map[string]string{"parsetime": "1"} }, // a typing error
		} {
			config, err := mysql.ParseDSN(dsn)
			if err != nil {
				t.Fatal(err)
			}
			damage(config)
			// t.Context has no deadline: waiting would hang.
			_, err = store.MySQL(t.Context(), config.FormatDSN(), store.Pool{})
			if err == nil {
				t.Errorf("wrong %s: opened", name)
				continue
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("wrong %s: got %q, which shows the password", name, err)
			}
			if !strings.Contains(err.Error(), config.Addr) {
				t.Errorf("wrong %s: got %q, want it to name %s", name, err, config.Addr)
			}
		}
	})
}

// The settings arrive on each connection.
func TestMySQL_session(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, dsn string) {
		db := open(t, dsn+"&innodb_lock_wait_timeout=7&autocommit=0&SQL_MODE=%27%27")
		var zone, mode string
		var wait int
		err := db.Raw("SELECT @@time_zone, @@sql_mode, @@innodb_lock_wait_timeout").Row().Scan(&zone, &mode, &wait)
		if err != nil {
			t.Fatal(err)
		}
		if zone != "+00:00" || !strings.Contains(mode, "STRICT_ALL_TABLES") || wait != 7 {
			t.Errorf("got time zone %s, mode %s, lock wait %d", zone, mode, wait)
		}
		mustExec(t, db, "CREATE TABLE words (word VARCHAR(3))", "INSERT INTO words VALUES ('abc')")
		if err := db.Exec("INSERT INTO words VALUES (?)", "abcd").Error; err == nil {
			t.Error(`"Text is never cut": VARCHAR(3) took four letters`)
		}
		same := db.Exec("UPDATE words SET word = 'abc'")
		if same.Error != nil || same.RowsAffected != 1 {
			t.Errorf(`"0 means that nothing matched": an update to the same value affected %d rows (%v)`, same.RowsAffected, same.Error)
		}
		ofAnother := open(t, dsn) // reads what is committed
		if err := ofAnother.Raw("SELECT COUNT(*) FROM words").Row().Scan(&wait); err != nil || wait != 1 {
			t.Errorf("got %d rows, %v: a statement by itself is not committed", wait, err)
		}
		// Bound values are quoted by the driver.
		const odd = `'"\` + "`"
		var back string
		if err := db.Raw("SELECT ?", odd).Row().Scan(&back); err != nil || back != odd {
			t.Errorf("got %q back (%v), want %q", back, err, odd)
		}
	})
}
