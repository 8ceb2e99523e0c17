package bench

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/lab"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/child"
	"example.com/shop/loadtest/shops"
)

// instances is how many shops stand beside each other.
const instances = 3

// environment is where a run takes place: the servers, and what is started on them.
type environment struct {
	*Command
	dir     string // removed at the end
	say     func(string)
	sql     *mysql.Config // nil for SQLite, as db
	db      *sql.DB
	durable string // what a commit of the database is worth
	shops.Undo
}

// startRedis takes the one given, a container, or the embedded server in this process.
func (e *environment) startRedis(ctx context.Context) (addr string, err error) {
	if e.Redis != "" {
		return e.Redis, nil
	}
	server, unavailable := testserver.OpenRedis(ctx)
	if unavailable == nil {
		e.Later(server.Close)
		return server.Addr(), nil
	}
	addrs, stop, err := lab.StartEmbedded(1)
	if err != nil {
		return "", err
	}
	e.say(fmt.Sprintf("no --redis, and no container (%v): Redis is embedded in this process, slower than Redis, and its work counts as the client's", unavailable))
	e.Later(stop)
	return addrs[0], nil
}

// openDatabase connects to the server given, or to a container. A commit survives a power cut if it is flushed in the
// log of the engine, and in the binary log if there is one.
func (e *environment) openDatabase(ctx context.Context) (err error) {
	if e.Database == "sqlite" {
		e.durable = "one file for all shops (synchronous=NORMAL: a power cut may take the last commits)"
		return nil
	}
	dsn := e.MySQL
	if dsn == "" {
		open := testserver.OpenMySQL
		if e.Database == "mariadb" {
			open = testserver.OpenMariaDB
		}
		server, err := open(ctx)
		if err != nil {
			return fmt.Errorf("%w; without Docker, give a server with --mysql", err)
		}
		e.Later(server.Close)
		if dsn, err = server.NewSchema(ctx, "shop"); err != nil {
			return err
		}
	}
	if e.sql, err = mysql.ParseDSN(dsn); err != nil {
		return errors.New("--mysql: not a DSN such as user:password@tcp(host:3306)/database")
	}
	if e.db, err = sql.Open("mysql", dsn); err != nil {
		return err
	}
	e.Later(e.db.Close)
	var flush, binlog, sync int
	row := e.db.QueryRowContext(ctx, "SELECT @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog")
	if err := row.Scan(&flush, &binlog, &sync); err != nil {
		return err
	}
	e.durable = fmt.Sprintf("commits (innodb_flush_log_at_trx_commit=%d, log_bin=%d, sync_binlog=%d)", flush, binlog, sync)
	if flush == 1 && (binlog == 0 || sync == 1) {
		e.durable = "durable " + e.durable
	} else {
		e.durable = "NOT durable " + e.durable
	}
	return nil
}

// fleet is shops of one program on one database and one Redis.
type fleet struct {
	program   string   // cmd/shop
	serve     []string // how its teaching shop is started
	variables []string
	procs     []*child.Process
}

// onGroup is the name of the fleet whose database is a MySQL group of three.
const onGroup = "group"

// startFleet starts the shops of a program: a file, or a folder to build it in. The fleet without a name has the
// database that was given, the others a new one.
func (e *environment) startFleet(ctx context.Context, name, program string) (*fleet, error) {
	redisAddr, err := e.startRedis(ctx)
	if err != nil {
		return nil, err
	}
	f := &fleet{program: program, variables: []string{"SHOP_REDIS=" + redisAddr}} // not flags: they may hold a password
	if info, err := os.Stat(program); program == "" || err == nil && info.IsDir() {
		e.say("building the shop, of " + cmp.Or(program, "this checkout"))
		f.program = filepath.Join(e.dir, "shop"+name)
		if err := child.Build(ctx, program, "cmd/shop", f.program); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(program, "cmd/lab")); err == nil || program == "" {
			f.serve = []string{filepath.Join(e.dir, "lab"+name)}
			if err := child.Build(ctx, program, "cmd/lab", f.serve[0]); err != nil {
				return nil, err
			}
		}
	}
	if f.serve == nil { // one program is both
		f.serve = []string{f.program, "serve", "--lab"}
	}
	if err := e.createDatabase(ctx, f, name); err != nil {
		return nil, err
	}
	migrate := exec.CommandContext(ctx, f.program, "migrate") //nolint:gosec // the user's choice
	migrate.Env = child.Environ(f.variables)
	if out, err := migrate.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("shop migrate: %w: %s", err, out)
	}
	for range instances {
		shop, err := e.startShop(ctx, f, instances)
		if err != nil {
			return nil, err
		}
		e.Later(shop.Stop)
		f.procs = append(f.procs, shop)
	}
	return f, nil
}

func (e *environment) createDatabase(ctx context.Context, f *fleet, name string) error {
	if e.db == nil {
		dir := filepath.Join(e.dir, "data"+name)
		f.variables = append(f.variables, "SHOP_DATA="+dir)
		return os.Mkdir(dir, 0o700)
	}
	if name == onGroup {
		group, err := testserver.OpenMySQLGroup(ctx)
		if err != nil {
			return err
		}
		e.Later(group.Close)
		dsn, err := group.Servers[0].NewSchema(ctx, "shop", group.Servers...)
		f.variables = append(f.variables, "SHOP_MYSQL="+dsn)
		return err
	}
	database := e.sql.Clone()
	if name != "" {
		database.DBName += name + time.Now().UTC().Format("_150405")
		if _, err := e.db.ExecContext(ctx, "CREATE DATABASE "+database.DBName); err != nil {
			return err
		}
		e.Later(func() error {
			_, err := e.db.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+database.DBName)
			return err
		})
	}
	f.variables = append(f.variables, "SHOP_MYSQL="+database.FormatDSN())
	return nil
}
