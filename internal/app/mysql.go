package app

import (
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// mysqlConfig reads a DSN. Its errors repeat nothing of it: it holds a password,
// and the driver's own errors can quote a part of that.
func mysqlConfig(dsn string) (c *mysql.Config, err error) {
	const want = "want a DSN such as user:password@tcp(127.0.0.1:3306)/shop"
	// The driver panics over a parameter that it took long ago.
	defer func() {
		if recover() != nil {
			c, err = nil, errors.New("mysql: a parameter of the DSN is no longer supported: "+want)
		}
	}()
	if strings.Contains(dsn, "://") {
		return nil, errors.New("mysql: " + want + ", not a URL")
	}
	c, err = mysql.ParseDSN(dsn)
	if err != nil {
		return nil, errors.New("mysql: the DSN cannot be read: " + want)
	}
	if c.DBName == "" {
		return nil, errors.New("mysql: the DSN names no database: " + want)
	}
	return c, nil
}
