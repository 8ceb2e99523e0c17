package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"

	"example.com/shop/internal/tlsclient"
)

// MySQL opens a MySQL or MariaDB server. A server that is not up yet is waited
// for until ctx ends; an answer such as "access denied" is an error at once, and
// so is a DSN that cannot work (ErrSettings). No error shows the password.
//
// With tls=true in the DSN the server must show a certificate for its host name
// that a CA of this system has signed, or it is refused at once, before it is told
// the user's name: see package tlsclient.
func MySQL(ctx context.Context, dsn string, p Pool, options ...Option) (*gorm.DB, error) {
	return MySQLOverTLS(ctx, dsn, nil, p, options...)
}

// MySQLOverTLS is MySQL that requires TLS as secure says, whether the DSN asks for
// it or not. A DSN that says tls=false contradicts it. Nil leaves TLS to the DSN.
func MySQLOverTLS(ctx context.Context, dsn string, secure *tls.Config, p Pool, options ...Option) (*gorm.DB, error) {
	p, err := p.withDefaults()
	if err != nil {
		return nil, err
	}
	config, err := mysqlConfig(dsn)
	if err != nil {
		return nil, err
	}
	if secure != nil {
		if err := requireTLS(config, secure); err != nil {
			return nil, err
		}
	}
	migrating, err := migrationConfig(config, dsn)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("%w: mysql DSN: %w", ErrSettings, err)
	}
	conns := opener(options)(connector)
	p.apply(conns)
	address := config.Net + "(" + config.Addr + ")"
	if err := await(ctx, "mysql at "+address, ping(conns), notUpYet); err != nil {
		return nil, errors.Join(err, conns.Close())
	}
	// DSNConfig is for Migrate. SkipInitializeWithVersion: what gorm would learn from the version matters
	// to its own migrations only, and it would ask without a context.
	db, err := gorm.Open(gormmysql.New(gormmysql.Config{Conn: conns, DSNConfig: migrating, SkipInitializeWithVersion: true}), gormConfig())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mysql at %s: %w", address, err), conns.Close())
	}
	return db, nil
}

// ping asks conns for an answer. Its errors tell why TLS failed.
func ping(conns *sql.DB) func(context.Context) error {
	return func(ctx context.Context) error {
		err := conns.PingContext(ctx)
		if errors.Is(err, mysql.ErrNoTLS) {
			return fmt.Errorf("%w: %w", tlsclient.ErrPlaintext, err)
		}
		return cmp.Or(tlsclient.Refusal(err), err)
	}
}

// notUpYet reports whether a failed ping may succeed later: there was no answer,
// or one that says "not now".
func notUpYet(err error) bool {
	var answer *mysql.MySQLError
	if errors.As(err, &answer) {
		return mysqlFault(answer.Number) == Lost
	}
	return tlsclient.Refusal(err) == nil
}
