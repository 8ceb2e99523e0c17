package store_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// "Errors are told apart by their numbers (Classify), never by their text."
func TestClassify(t *testing.T) {
	t.Parallel()
	answer := func(number uint16) error { return &mysql.MySQLError{Number: number, Message: "database is locked"} }
	for _, c := range []struct {
		err  error
		want store.Fault
	}{
		{nil, store.None},
		{answer(1062), store.Duplicate},
		{answer(1586), store.Duplicate},
		{answer(1213), store.Conflict},
		{answer(1020), store.Conflict},
		{answer(3101), store.Conflict},
		{answer(1205), store.LockWait},
		{answer(1317), store.Interrupted},
		{answer(1969), store.Interrupted},
		{answer(3024), store.Interrupted},
		{answer(1040), store.Lost},
		{answer(1053), store.Lost},
		{answer(1927), store.Lost},
		{answer(4031), store.Lost},
		{answer(1064), store.Other},
		{answer(3819), store.Other},
		{mysql.ErrInvalidConn, store.Lost},
		{driver.ErrBadConn, store.Lost},
		{io.ErrUnexpectedEOF, store.Lost},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, store.Lost},
		{context.Canceled, store.Other},
		{context.DeadlineExceeded, store.Other}, // has the methods of a network error
		{errors.New("Error 1213: deadlock"), store.Other},
	} {
		if got := store.Classify(c.err); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
		later := c.want == store.Conflict || c.want == store.LockWait || c.want == store.Lost
		if got := store.Unavailable(c.err); got != later {
			t.Errorf("%v: got unavailable %v, want %v", c.err, got, later)
		}
		if c.err != nil {
			wrapped := fmt.Errorf("sku %q: %w", "mug", errors.Join(errors.New("more"), c.err))
			if got := store.Classify(wrapped); got != c.want {
				t.Errorf("wrapped %v: got %q, want %q", c.err, got, c.want)
			}
		}
	}
	// https://www.sqlite.org/rescode.html
	for code, want := range map[int]store.Fault{
		5: store.Conflict, 261: store.Conflict, 517: store.Conflict, 773: store.Conflict, // BUSY and its kin
		6: store.Conflict, 262: store.Conflict, // LOCKED
		9:    store.Interrupted,
		1555: store.Duplicate, 2067: store.Duplicate, // PRIMARYKEY, UNIQUE
		275: store.Other, 1299: store.Other, // CHECK, NOTNULL
		1: store.Other, 10: store.Other, 13: store.Other, 14: store.Other,
	} {
		if got := store.SQLiteFault(code); got != want {
			t.Errorf("SQLite code %d: got %q, want %q", code, got, want)
		}
	}
}

// What the databases really say.
func TestClassify_realErrors(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		mustExec(t, db, "CREATE TABLE pairs (a INT NOT NULL PRIMARY KEY, b INT NOT NULL UNIQUE, CHECK (b > 0))", "INSERT INTO pairs VALUES (1, 1)")
		for statement, want := range map[string]store.Fault{
			"INSERT INTO pairs VALUES (1, 2)":       store.Duplicate,
			"INSERT INTO pairs VALUES (2, 1)":       store.Duplicate,
			"INSERT INTO pairs VALUES (2, -1)":      store.Other,
			"INSERT INTO pairs VALUES (2, NULL)":    store.Other,
			"INSERT INTO nowhere VALUES (2, NULL)":  store.Other,
			"INSERT INTO pairs VALUES (2, 2) WHERE": store.Other,
		} {
			if err := db.Exec(statement).Error; store.Classify(err) != want {
				t.Errorf("%s: got %q (%v), want %q", statement, store.Classify(err), err, want)
			}
		}
	})
}
