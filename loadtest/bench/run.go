package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/lab"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// run is one run of the benchmark, with its servers and shops.
type run struct {
	*Command
	dir   string // removed at the end
	say   func(string)
	conns *http.Client
	shops.Undo

	sql      *mysql.Config // nil for SQLite, as db
	db       *sql.DB
	database string // name, and durability of commits
	own      *fleet
	other    *fleet           // nil without --against
	handlers []*shops.Process // do nothing
}

// start starts the servers, the shops and the handlers.
func (r *run) start(ctx context.Context) (err error) {
	r.say("starting Redis, the database and the shops")
	if err := r.openDatabase(ctx); err != nil {
		return err
	}
	if r.own, err = r.startFleet(ctx, "", r.Shop); err != nil {
		return err
	}
	switch r.Against {
	case "":
	case onGroup:
		r.other, err = r.startFleet(ctx, onGroup, r.Shop)
	default:
		r.other, err = r.startFleet(ctx, "_other", r.Against)
	}
	if err != nil {
		return err
	}
	r.handlers, err = r.startAll(ctx, nil, "")
	return err
}

// operator returns a client of one shop of the fleet. It sees the sales of all shops, because they share the database.
func (r *run) operator(f *fleet) *shopclient.Client {
	return f.procs[r.Strategies[0]][0].Client(r.conns)
}

// clerks is the number of concurrent requests of the operator.
const clerks = 8

// newSKUs returns new names of SKUs. If the fleet is not nil, it also puts units of each SKU up for sale.
func (r *run) newSKUs(ctx context.Context, f *fleet, n int, units int64) ([]string, error) {
	skus := make([]string, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clerks)
	for i := range skus {
		skus[i] = "bench-" + strings.ToLower(rand.Text()[:16])
		if f != nil {
			group.Go(func() error { return r.operator(f).Create(ctx, skus[i], units) })
		}
	}
	return skus, group.Wait()
}

// hold runs a case. Each round begins with another row.
func (r *run) hold(ctx context.Context, c *contest) error {
	c.rows = r.lineup(c)
	rounds, measure := r.Rounds, r.measure
	if c.once {
		rounds, measure = 1, r.crowd
	}
	for n := range rounds {
		for i := range c.rows {
			who := c.rows[(i+n)%len(c.rows)]
			one, err := measure(ctx, *who, *c, r.Time)
			if err != nil {
				return fmt.Errorf("%d buyers at %s: %w", who.buyers, who.name, err)
			}
			r.say(fmt.Sprintf("%s, %d buyers, round %d of %d: %s: %s answers/s, p50 %s, %d errors",
				c.name, who.buyers, n+1, rounds, who.name, whole(one.AnswersPerSecond), millis(one.LatencyMS.P50), one.Errors))
			who.rounds = append(who.rounds, one)
		}
	}
	return nil
}

// crowd is like measure, for buyers who all come once, to a fresh but warm process. The buyers use the
// memory that the process gains.
func (r *run) crowd(ctx context.Context, who row, c contest, _ time.Duration) (one round, err error) {
	fresh, err := r.startOne(ctx, who.shops, who.strategy, 1)
	if err != nil {
		return round{}, err
	}
	defer func() { err = errors.Join(err, fresh.Stop()) }()
	who.procs = []*shops.Process{fresh}
	first := who
	first.buyers = 1
	one, err = r.measure(ctx, first, c, 100*time.Millisecond)
	if err != nil || one.Wrong != "" {
		return one, err
	}
	idle, _ := memory(fresh.Pid)
	one, err = r.measure(ctx, who, c, 0)
	_, peak := memory(fresh.Pid)
	one.BuyerBytes = (peak - idle) / int64(who.buyers)
	return one, err
}

// measure puts fresh SKUs up for sale, sends orders for the given time, and compares the answers with the books.
func (r *run) measure(ctx context.Context, who row, c contest, length time.Duration) (one round, err error) {
	skus, err := r.newSKUs(ctx, who.shops, max(1, c.skus), c.units)
	if err != nil {
		return round{}, err
	}
	one, err = race(ctx, who, c, skus, length)
	if err == nil && who.shops != nil {
		one.Wrong, err = r.check(ctx, who.shops, skus, c.units, one)
	}
	return one, err
}

// check returns the error in the books of these SKUs, or an empty text. For several SKUs it audits the whole shop at
// once, because an audit of each SKU would read the orders of all.
func (r *run) check(ctx context.Context, f *fleet, skus []string, supplied int64, one round) (wrong string, err error) {
	shop, audited := r.operator(f), skus[0]
	if len(skus) > 1 {
		audited = ""
	}
	audit, err := shop.Audit(ctx, audited)
	if err != nil {
		return "", err
	}
	if !audit.OK {
		return fmt.Sprintf("the audit found %+v", audit.Differences), nil
	}
	taken := int64(0) // units
	for _, sku := range skus {
		available, _, err := shop.Stock(ctx, sku)
		if err != nil {
			return "", err
		}
		taken += supplied - available
	}
	return disagree(taken, one), nil
}

// disagree compares the units that were taken by the books with the answers.
func disagree(taken int64, r round) string {
	if taken >= r.Units && taken <= r.Units+r.Unsettled {
		return ""
	}
	return fmt.Sprintf("%d units in the books, %d acknowledged, %d unsettled", taken, r.Units, r.Unsettled)
}

// maxOpen is the number of pending orders that a shop allows to a buyer.
const maxOpen = 10

// patience limits the wait for an answer, and for each buyer's first answer. It exceeds a shop's own limit.
const patience = 2 * time.Minute

// round is the result of a load.
type round struct {
	crowd.Summary
	Problem string // reasons of failed orders; empty if no order failed

	// By the buyers' answers: units of their orders, and units of orders that have an unknown outcome or may be cancelled.
	Units     int64
	Unsettled int64

	BuyerBytes int64  // grow: memory for each buyer, at the peak
	Wrong      string // error in the books; empty for none
}

// race lets a crowd buy. If length is 0, each buyer buys once, all at the same moment. Otherwise each buyer buys again
// and again, and the measurement begins when each buyer has had an answer and a fifth of length has passed. Before
// that, the shop dials its own connections, and a strategy with a long queue has not shown its pace.
func race(ctx context.Context, who row, c contest, skus []string, length time.Duration) (round, error) {
	r := crowd.Race{
		Strategy: who.strategy, Think: -1, Buyers: who.buyers, Duration: length, Timeout: patience,
		SKUs: skus, Skew: c.skew, Least: c.least, Lines: c.lines, Pay: c.pay, Cancel: c.cancel,
		Orders: maxOpen, Tally: new(crowd.Tally),
		// A buyer does not retry after an error, but pauses, so that it does not spin if a shop fails at once.
		RequestTimeout: patience, Patience: crowd.Patience{Tries: 1, Pause: 10 * time.Millisecond, MaxPause: 10 * time.Millisecond},
	}
	for _, p := range who.procs {
		r.Shops = append(r.Shops, p.Client)
	}
	log, err := r.Run(ctx)
	one := round{Summary: log.Summary(), Problem: strings.Join(log.Notes(), "; ")}
	for _, order := range log.Records {
		units := int64(len(order.Lines)) // one unit of each SKU
		switch {
		case order.Outcome == crowd.Unknown, order.Outcome == crowd.Ordered && order.Cancelled:
			one.Unsettled += units
		case order.Outcome == crowd.Ordered:
			one.Units += units
		}
	}
	return one, err
}

// instances is the number of shops that share a database.
const instances = 3

// startRedis returns the address of the given Redis, of a container or, without Docker, of the embedded server.
func (r *run) startRedis(ctx context.Context) (addr string, err error) {
	if r.Redis != "" {
		return r.Redis, nil
	}
	server, unavailable := testserver.OpenRedis(ctx)
	if unavailable == nil {
		r.Later(server.Close)
		return server.Addr(), nil
	}
	addrs, stop, err := lab.StartEmbedded(1)
	if err != nil {
		return "", err
	}
	r.say(fmt.Sprintf("no --redis, and no container (%v): Redis is embedded in this process, and slower than a real Redis", unavailable))
	r.Later(stop)
	return addrs[0], nil
}

// openDatabase connects to the given server, or to a container. A commit is durable if it is flushed to the log of the
// engine and to the binary log, if there is one.
func (r *run) openDatabase(ctx context.Context) (err error) {
	if r.Database == "sqlite" {
		r.database = "SQLite, one file for all shops (synchronous=NORMAL: a power cut may take the last commits)"
		return nil
	}
	dsn := r.MySQL
	if dsn == "" {
		open := testserver.OpenMySQL
		if r.Database == "mariadb" {
			open = testserver.OpenMariaDB
		}
		server, err := open(ctx)
		if err != nil {
			return fmt.Errorf("%w; without Docker, give a server with --mysql", err)
		}
		r.Later(server.Close)
		if dsn, err = server.NewSchema(ctx, "shop"); err != nil {
			return err
		}
	}
	if r.sql, err = mysql.ParseDSN(dsn); err != nil {
		return errors.New("--mysql: not a DSN such as user:password@tcp(host:3306)/database")
	}
	if r.db, err = sql.Open("mysql", dsn); err != nil {
		return err
	}
	r.Later(r.db.Close)
	return r.db.QueryRowContext(ctx, `SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), SUBSTRING_INDEX(VERSION(), '-', 1),
		IF(@@innodb_flush_log_at_trx_commit = 1 AND (@@log_bin = 0 OR @@sync_binlog = 1), ', durable', ', NOT durable'),
		' commits (innodb_flush_log_at_trx_commit=', @@innodb_flush_log_at_trx_commit, ', log_bin=', @@log_bin,
		', sync_binlog=', @@sync_binlog, ')')`).Scan(&r.database)
}

// fleet has the shops of one checkout, on one database and one Redis.
type fleet struct {
	shops.Program
	redis     string // its address
	variables []string
	procs     map[string][]*shops.Process // by strategy
}

// onGroup is the name of the fleet whose database is a MySQL group of three.
const onGroup = "group"

// startFleet starts the shops of a program, which is a file or a checkout to build it from. The fleet without a name
// uses the given database; other fleets get a new one.
func (r *run) startFleet(ctx context.Context, name, program string) (f *fleet, err error) {
	f = &fleet{Program: shops.Program{File: program, Keys: shopclient.NewKeys()}, procs: map[string][]*shops.Process{}}
	if info, err := os.Stat(program); err != nil || info.IsDir() {
		r.say("building the shop of " + cmp.Or(program, "this checkout"))
		f.File = filepath.Join(r.dir, "shop"+name)
		if err := shops.Build(ctx, program, "cmd/shop", f.File); err != nil {
			return nil, err
		}
	}
	if f.redis, err = r.startRedis(ctx); err != nil {
		return nil, err
	}
	database, err := r.createDatabase(ctx, name)
	if err != nil {
		return nil, err
	}
	f.variables = []string{"SHOP_REDIS=" + f.redis, database} // not flags: they may contain a password
	if err := f.Migrate(ctx, f.variables); err != nil {
		return nil, err
	}
	for _, strategy := range r.Strategies {
		if f.procs[strategy], err = r.startAll(ctx, f, strategy); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// createDatabase returns the variable that names the database of a fleet.
func (r *run) createDatabase(ctx context.Context, name string) (variable string, err error) {
	if r.db == nil {
		dir := filepath.Join(r.dir, "data"+name)
		return "SHOP_DATA=" + dir, os.Mkdir(dir, 0o700)
	}
	if name == onGroup {
		group, err := testserver.OpenMySQLGroup(ctx)
		if err != nil {
			return "", err
		}
		r.Later(group.Close)
		dsn, err := group.Servers[0].NewSchema(ctx, "shop", group.Servers[1:]...)
		return "SHOP_MYSQL=" + dsn, err
	}
	database := r.sql.Clone()
	if name != "" {
		database.DBName += name + time.Now().UTC().Format("_150405")
		if _, err := r.db.ExecContext(ctx, "CREATE DATABASE "+database.DBName); err != nil {
			return "", err
		}
		r.Later(func() error {
			_, err := r.db.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+database.DBName)
			return err
		})
	}
	return "SHOP_MYSQL=" + database.FormatDSN(), nil
}

// startAll starts the shops of a fleet for a strategy or, without a fleet, the handlers that do nothing.
func (r *run) startAll(ctx context.Context, f *fleet, strategy string) (all []*shops.Process, err error) {
	for range instances {
		p, err := r.startOne(ctx, f, strategy, instances)
		if err != nil {
			return nil, err
		}
		r.Later(p.Stop)
		all = append(all, p)
	}
	return all, nil
}

// startOne starts one of n processes that share the machine.
func (r *run) startOne(ctx context.Context, f *fleet, strategy string, n int) (*shops.Process, error) {
	if f != nil {
		return f.Start(ctx, n, f.variables, append([]string{
			"--strategy=" + strategy, "--log-level=warn", "--reconcile-at=off", "--drain=5s", "--pay-within=24h", "--max-in-flight=20000",
			"--lock-wait=90s", "--rate-limit=100000", fmt.Sprint("--max-open-orders=", maxOpen),
		}, r.ShopFlag...)...)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return shops.Start(ctx, n, self, nil, "bench", "--nothing")
}

// memory returns the resident bytes of a process, now and at its peak. Both are 0 on systems other than Linux.
func memory(pid int) (now, peak int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &now)
		_, _ = fmt.Sscanf(line, "VmHWM: %d kB", &peak)
	}
	return now << 10, peak << 10
}

// anOrder has the length of a shop's answer.
const anOrder = `{"id":"01930000-0000-7000-8000-000000000000","buyer":"buyer-1","status":"pending",` +
	`"lines":[{"sku":"bench-abcdefghijklmnop","quantity":1,"price":{"minor":100,"currency":"EUR"}}],"total":{"minor":100,"currency":"EUR"},` +
	`"created_at":"2026-01-01T00:00:00.123456Z","expires_at":"2026-01-02T00:00:00.123456Z"}`

// serveNothing answers every request with 201 and the same body. The cost of gin and net/http is the
// ceiling for a shop.
func serveNothing(ctx context.Context, stdout io.Writer) error {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Any("/*path", func(c *gin.Context) {
		_, _ = io.Copy(io.Discard, c.Request.Body)
		c.Data(http.StatusCreated, "application/json; charset=utf-8", []byte(anOrder))
	})
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: engine, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Fprintf(stdout, "The shop is open at http://%s\nThe operator's API is at http://%[1]s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
