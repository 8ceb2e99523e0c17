package bench

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lab"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/shopclient"
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

// versions returns the names of the servers, such as "MySQL 9.1.0" and "Redis 8.0.2". A Redis may forbid INFO, and the
// embedded one has no version.
func (e *environment) versions(ctx context.Context, redisAddr string) (database, cache string, err error) {
	database = "SQLite"
	if e.db != nil {
		if err := e.db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&database); err != nil {
			return "", "", err
		}
		version, _, _ := strings.Cut(database, "-")
		database = map[string]string{"mysql": "MySQL ", "mariadb": "MariaDB "}[e.Database] + version
	}
	options, err := redis.ParseURL("redis://" + strings.TrimPrefix(redisAddr, "redis://"))
	if err != nil { // it is of Sentinels or of a Cluster
		return database, "Redis, version unknown", nil
	}
	client := redis.NewClient(options)
	defer func() { err = errors.Join(err, client.Close()) }()
	return database, lab.RedisVersion(ctx, client), nil
}

// fleet is shops of one checkout on one database and one Redis.
type fleet struct {
	shops.Program
	redis     string // its address
	variables []string
	procs     map[string][]*shops.Process // by the strategy by which they sell
}

// client speaks to one of the shops that sell by the strategy.
func (f *fleet) client(strategy string, conns *http.Client) *shopclient.Client {
	return f.procs[strategy][0].Client(conns)
}

// onGroup is the name of the fleet whose database is a MySQL group of three.
const onGroup = "group"

// startFleet starts the shops of a program: a file, or a folder to build it in. The fleet without a name has the
// database that was given, the others a new one.
func (e *environment) startFleet(ctx context.Context, name, program string) (f *fleet, err error) {
	f = &fleet{Program: shops.Program{File: program, Keys: shopclient.NewKeys()}, procs: map[string][]*shops.Process{}}
	if info, err := os.Stat(program); err != nil || info.IsDir() {
		e.say("building the shop, of " + cmp.Or(program, "this checkout"))
		f.File = filepath.Join(e.dir, "shop"+name)
		if err := shops.Build(ctx, program, "cmd/shop", f.File); err != nil {
			return nil, err
		}
	}
	if f.redis, err = e.startRedis(ctx); err != nil {
		return nil, err
	}
	database, err := e.createDatabase(ctx, name)
	if err != nil {
		return nil, err
	}
	f.variables = []string{"SHOP_REDIS=" + f.redis, database} // not flags: they may hold a password
	if err := f.Migrate(ctx, f.variables); err != nil {
		return nil, err
	}
	for _, strategy := range e.Strategies {
		for range instances {
			shop, err := e.startShop(ctx, f, strategy, instances)
			if err != nil {
				return nil, err
			}
			e.Later(shop.Stop)
			f.procs[strategy] = append(f.procs[strategy], shop)
		}
	}
	return f, nil
}

// createDatabase returns the variable that names the database of a fleet.
func (e *environment) createDatabase(ctx context.Context, name string) (variable string, err error) {
	if e.db == nil {
		dir := filepath.Join(e.dir, "data"+name)
		return "SHOP_DATA=" + dir, os.Mkdir(dir, 0o700)
	}
	if name == onGroup {
		group, err := testserver.OpenMySQLGroup(ctx)
		if err != nil {
			return "", err
		}
		e.Later(group.Close)
		dsn, err := group.Servers[0].NewSchema(ctx, "shop", group.Servers...)
		return "SHOP_MYSQL=" + dsn, err
	}
	database := e.sql.Clone()
	if name != "" {
		database.DBName += name + time.Now().UTC().Format("_150405")
		if _, err := e.db.ExecContext(ctx, "CREATE DATABASE "+database.DBName); err != nil {
			return "", err
		}
		e.Later(func() error {
			_, err := e.db.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+database.DBName)
			return err
		})
	}
	return "SHOP_MYSQL=" + database.FormatDSN(), nil
}
