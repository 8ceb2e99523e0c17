package bench

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lab"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/child"
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
	cache = "Redis, version unknown"
	options, err := redis.ParseURL("redis://" + strings.TrimPrefix(redisAddr, "redis://"))
	if err != nil { // it is of Sentinels or of a Cluster
		return database, cache, nil
	}
	client := redis.NewClient(options)
	defer func() { err = errors.Join(err, client.Close()) }()
	return database, lab.RedisVersion(ctx, client), nil
}

// distant returns an address that leads to a server with the latency of the settings.
func (e *environment) distant(ctx context.Context, server string) (addr string, err error) {
	if e.Latency == 0 {
		return server, nil
	}
	link, err := testserver.NewLink(ctx, false, func() string { return server })
	if err != nil {
		return "", err
	}
	e.Later(func() error { link.Close(); return nil })
	link.Delay(e.Latency)
	return link.Addr, nil
}

// fleet is shops of one checkout on one database and one Redis: for each strategy some that sell by it, or some in which
// requests choose.
type fleet struct {
	shop      string           // cmd/shop
	lab       []string         // how a teaching shop is started
	keys      *shopclient.Keys // nil: all are teaching shops
	provider  bool             // those with keys take a payment provider's word, and not the buyers'
	redis     string           // its address
	variables []string
	procs     map[string][]*child.Process // by strategy; "": teaching shops
}

// wantsTokens reports whether the strategy is one of those that cmd/shop has.
func (f *fleet) wantsTokens(strategy string) bool {
	return f.keys != nil && lab.InShop(strategy)
}

// sellBy returns the shops that sell by the strategy.
func (f *fleet) sellBy(strategy string) []*child.Process {
	if !f.wantsTokens(strategy) {
		strategy = ""
	}
	return f.procs[strategy]
}

// client speaks to one of the shops that sell by the strategy.
func (f *fleet) client(strategy string, conns *http.Client) *shopclient.Client {
	at := f.sellBy(strategy)[0]
	client := shopclient.New("http://"+at.Addr, conns)
	if !f.wantsTokens(strategy) {
		return client
	}
	return client.WithKeys(f.keys, "http://"+at.Operator)
}

// onGroup is the name of the fleet whose database is a MySQL group of three.
const onGroup = "group"

// startFleet starts the shops of a program: a file, or a folder to build it in. The fleet without a name has the
// database that was given, the others a new one.
func (e *environment) startFleet(ctx context.Context, name, program string) (*fleet, error) {
	redisAddr, err := e.startRedis(ctx)
	if err == nil {
		redisAddr, err = e.distant(ctx, redisAddr)
	}
	if err != nil {
		return nil, err
	}
	f := &fleet{redis: redisAddr, variables: []string{"SHOP_REDIS=" + redisAddr}, procs: map[string][]*child.Process{}} // not flags: they may hold a password
	if err := e.build(ctx, f, name, program); err != nil {
		return nil, err
	}
	if err := e.createDatabase(ctx, f, name); err != nil {
		return nil, err
	}
	migrate := exec.CommandContext(ctx, f.shop, "migrate") //nolint:gosec // the user's choice
	migrate.Env = child.Environ(f.variables)
	if out, err := migrate.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("shop migrate: %w: %s", err, out)
	}
	for _, strategy := range e.Strategies {
		if f.sellBy(strategy) != nil {
			continue
		}
		var all []*child.Process
		for range instances {
			shop, err := e.startShop(ctx, f, strategy, instances)
			if err != nil {
				return nil, err
			}
			e.Later(shop.Stop)
			all = append(all, shop)
		}
		if !f.wantsTokens(strategy) {
			strategy = ""
		}
		f.procs[strategy] = all
		if strategy != "" {
			conns := shopclient.NewConnections(1, patience)
			_, err := f.client(strategy, conns).Payments(ctx, true)
			f.provider = err == nil // an older program has no payments
			conns.CloseIdleConnections()
		}
	}
	return f, nil
}

// build makes the programs of a checkout, or takes a cmd/shop that is built. One without cmd/lab beside it is a teaching shop
// by a flag.
func (e *environment) build(ctx context.Context, f *fleet, name, program string) error {
	if info, err := os.Stat(program); err == nil && !info.IsDir() {
		f.shop = program
		if err := exec.CommandContext(ctx, program, "serve", "--lab", "--help").Run(); err == nil {
			f.lab = []string{program, "serve", "--lab"}
			return nil
		}
		f.keys = shopclient.NewKeys()
		return nil
	}
	e.say("building the shop, of " + cmp.Or(program, "this checkout"))
	f.shop = filepath.Join(e.dir, "shop"+name)
	if err := child.Build(ctx, program, "cmd/shop", f.shop); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(program, "cmd/lab")); err != nil && program != "" {
		f.lab = []string{f.shop, "serve", "--lab"}
		return nil
	}
	f.keys, f.lab = shopclient.NewKeys(), []string{filepath.Join(e.dir, "lab"+name)}
	if !slices.ContainsFunc(e.Strategies, func(s string) bool { return !f.wantsTokens(s) }) {
		return nil
	}
	return child.Build(ctx, program, "cmd/lab", f.lab[0])
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
		if err != nil {
			return err
		}
		for _, server := range group.Servers {
			addr, err := e.distant(ctx, server.Addr())
			if err != nil {
				return err
			}
			dsn = strings.Replace(dsn, server.Addr(), addr, 1)
		}
		f.variables = append(f.variables, "SHOP_MYSQL="+dsn)
		return nil
	}
	database := e.sql.Clone()
	var err error
	if database.Addr, err = e.distant(ctx, database.Addr); err != nil {
		return err
	}
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
