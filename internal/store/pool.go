package store

import (
	"cmp"
	"database/sql"
	"fmt"
	"time"
)

// Pool limits the connections to a MySQL or MariaDB server. Zero fields get
// their defaults.
type Pool struct {
	MaxOpen     int           // connections at most; 32. The server's max_connections is shared by all instances
	MaxIdle     int           // connections kept while unused; as MaxOpen, for dialling is dearer than keeping
	MaxIdleTime time.Duration // closed after being unused for so long; 1 minute
	MaxLifetime time.Duration // closed at this age, so that a new server behind the address gets its share; 5 minutes
}

func (p Pool) withDefaults() (Pool, error) {
	switch {
	case p.MaxOpen < 0:
		return p, fmt.Errorf("%w: pool: MaxOpen %d: want 0 (the default) or more", ErrSettings, p.MaxOpen)
	case p.MaxIdle < 0:
		return p, fmt.Errorf("%w: pool: MaxIdle %d: want 0 (as MaxOpen) or more", ErrSettings, p.MaxIdle)
	case p.MaxIdleTime < 0:
		return p, fmt.Errorf("%w: pool: MaxIdleTime %v: want 0 (the default) or more", ErrSettings, p.MaxIdleTime)
	case p.MaxLifetime < 0:
		return p, fmt.Errorf("%w: pool: MaxLifetime %v: want 0 (the default) or more", ErrSettings, p.MaxLifetime)
	}
	p.MaxOpen = cmp.Or(p.MaxOpen, 32)
	p.MaxIdle = min(cmp.Or(p.MaxIdle, p.MaxOpen), p.MaxOpen)
	p.MaxIdleTime = cmp.Or(p.MaxIdleTime, time.Minute)
	p.MaxLifetime = cmp.Or(p.MaxLifetime, 5*time.Minute)
	return p, nil
}

func (p Pool) apply(db *sql.DB) {
	db.SetMaxOpenConns(p.MaxOpen)
	db.SetMaxIdleConns(p.MaxIdle)
	db.SetConnMaxIdleTime(p.MaxIdleTime)
	db.SetConnMaxLifetime(p.MaxLifetime)
}
