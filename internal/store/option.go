package store

import (
	"database/sql"
	"database/sql/driver"
)

// Option changes how a database is opened.
type Option func(*options)

type options struct {
	open func(driver.Connector) *sql.DB
}

// Through makes the pool of connections with open instead of sql.OpenDB, so that
// the caller can see what goes over them.
func Through(open func(driver.Connector) *sql.DB) Option {
	return func(o *options) { o.open = open }
}

func opener(changes []Option) func(driver.Connector) *sql.DB {
	o := options{open: sql.OpenDB}
	for _, change := range changes {
		change(&o)
	}
	return o.open
}
