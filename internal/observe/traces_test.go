package observe

import (
	"database/sql/driver"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// "Errors of the database have their numbers. The text of a MySQL error may quote a row."
func TestErrorAttributes(t *testing.T) {
	t.Parallel()
	duplicate := &mysql.MySQLError{Number: 1062, Message: "Duplicate entry 'ann-key-1' for key 'PRIMARY'"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{duplicate, "[error.type=*mysql.MySQLError db.response.status_code=1062]"},
		{driver.ErrBadConn, "[error.type=*errors.errorString]"},
		{driver.ErrSkip, "[]"},
	} {
		var got []string
		for _, a := range errorAttributes(c.err) {
			got = append(got, string(a.Key)+"="+a.Value.String())
		}
		if got := fmt.Sprint(got); got != c.want {
			t.Errorf("%v: got %s, want %s", c.err, got, c.want)
		}
	}
}
