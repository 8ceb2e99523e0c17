package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
)

// MySQL opens a MySQL or MariaDB server. A server that is not up yet is waited
// for until ctx ends; an answer such as "access denied" is an error at once, and
// so is a DSN that cannot work (ErrSettings). No error shows the password.
func MySQL(ctx context.Context, dsn string, p Pool) (*gorm.DB, error) {
	p, err := p.withDefaults()
	if err != nil {
		return nil, err
	}
	config, err := mysqlConfig(dsn)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("%w: mysql DSN: %w", ErrSettings, err)
	}
	conns := sql.OpenDB(connector)
	p.apply(conns)
	address := config.Net + "(" + config.Addr + ")"
	if err := await(ctx, "mysql at "+address, conns.PingContext, notUpYet); err != nil {
		return nil, errors.Join(err, conns.Close())
	}
	// SkipInitializeWithVersion: what gorm would learn from the version matters
	// to its own migrations only, and it would ask without a context.
	db, err := gorm.Open(gormmysql.New(gormmysql.Config{Conn: conns, SkipInitializeWithVersion: true}), gormConfig())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mysql at %s: %w", address, err), conns.Close())
	}
	return db, nil
}

// notUpYet reports whether a failed ping may succeed later: there was no answer,
// or one that says "not now".
func notUpYet(err error) bool {
	var answer *mysql.MySQLError
	return !errors.As(err, &answer) || mysqlFault(answer.Number) == Lost
}
