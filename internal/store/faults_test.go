package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/order"
)

// "Errors are distinguished by their numbers (tx.go), never by their text", also where they are wrapped. What may
// pass is ErrBusy.
func TestClassify(t *testing.T) {
	t.Parallel()
	server := func(number uint16) error { return &mysql.MySQLError{Number: number, Message: "database is locked"} }
	for _, c := range []struct {
		want fault
		errs []error
	}{
		{duplicate, []error{server(1062), server(1586)}},
		{conflict, []error{server(1213), server(1020)}},
		{lockWait, []error{server(1205)}},
		{refused, []error{server(1226), server(1114), server(1021), server(3100), server(3101), server(1290), server(1836),
			server(1792), server(3906)}},
		{interrupted, []error{server(1317), server(1969), server(3024)}},
		{lost, []error{
			server(1040), server(1053), server(1158), server(1927), server(4031), mysql.ErrInvalidConn, driver.ErrBadConn, io.ErrUnexpectedEOF,
			&net.OpError{Op: "dial", Err: errors.New("refused")},
			noPrimaryError{text: "db1: Error 1142"},
		}},
		{other, []error{
			server(1064), server(3819), context.Canceled, context.DeadlineExceeded, // the last has the methods of a network error
			errors.New("Error 1213: deadlock"),
		}},
	} {
		for _, err := range c.errs {
			err = fmt.Errorf("sku %q: %w", "mug", errors.Join(errors.New("more"), err))
			if got := classify(err); got != c.want {
				t.Errorf("%v: got %q, want %q", err, got, c.want)
			}
			passes := c.want != duplicate && c.want != other
			if got := errors.Is(explain(t.Context(), "read", err), order.ErrBusy); got != passes {
				t.Errorf("%v: got busy %v, want %v", err, got, passes)
			}
		}
	}
	for code, want := range map[int]fault{ // https://www.sqlite.org/rescode.html
		5: conflict, 261: conflict, 517: conflict, 773: conflict, // BUSY and its kin
		6: conflict, 262: conflict, // LOCKED
		7: refused, 13: refused, // NOMEM, FULL
		9: interrupted, 1555: duplicate, 2067: duplicate, // PRIMARYKEY, UNIQUE
		275: other, 1299: other, 1: other, 10: other, 14: other,
	} {
		if got := sqliteFault(code); got != want {
			t.Errorf("SQLite code %d: got %q, want %q", code, got, want)
		}
	}
}

// "The shop needs the collation utf8mb4_0900_bin, which MySQL has from 8.0.17 on, and SKIP LOCKED,
// which MariaDB has from 10.6 on."
func TestSupported(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"8.0.16": false, "8.0.17": true, "8.0.36-28": true, "9.7.0": true, "10.0.1": true, "5.7.44-log": false, "odd": false,
		"10.5.27-MariaDB": false, "10.6.0-MariaDB-log": true, "10.11.18-MariaDB-0+deb12u1": true, "12.0.2-MariaDB": true,
	} {
		if err := supported(version); (err == nil) != want {
			t.Errorf("%s: got %v, want it to be supported: %v", version, err, want)
		}
	}
}
