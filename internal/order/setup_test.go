package order_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"example.com/shop/internal/app"
	"example.com/shop/internal/lab"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
	"example.com/shop/internal/lock/zklock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/batch"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

// config says how an instance of a shop is wired. Instances with the same db and backend are instances of one shop.
type config struct {
	db       *store.Store
	backend  lock.Backend
	ttl      time.Duration // of leases
	maxWait  time.Duration // for them
	margin   time.Duration // of leases, to start a COMMIT; 0 means a tenth of ttl
	maxOpen  int
	strategy string                                // by which it sells
	lockers  map[string]strategy.Locker            // further ones
	counts   redis.UniversalClient                 // nil for none
	wrap     func(strategy.Locker) strategy.Locker // goes around the shared locker; nil for nothing
	batch    batch.Config                          // what a test sets of it
}

// bundle is an instance of a shop and what a test does around its store.
type bundle struct {
	*order.Service
	offers  []lab.Offer
	lanes   *batch.Seller
	batches *batch.Seller // without leases
	db      *store.Store
	spy     *spyStore    // around db
	shared  *lock.Locker // stands for the lock that all instances share
	config  config
	lockers map[string]strategy.Locker
}

// setup returns an instance over a database, with a lock in memory, which sells by the strategy redis.
func setup(t testing.TB, db *store.Store, change ...func(*config)) *bundle {
	t.Helper()
	c := config{db: db, backend: lock.NewMemory(), ttl: 10 * time.Second, maxWait: 5 * time.Minute, strategy: "redis"}
	return c.open(t, change...)
}

// another returns another instance of b's shop.
func (b *bundle) another(t testing.TB, change ...func(*config)) *bundle {
	t.Helper()
	return b.config.open(t, change...)
}

// open returns an instance that closes with the test.
func (c config) open(t testing.TB, change ...func(*config)) *bundle {
	t.Helper()
	for _, f := range change {
		f(&c)
	}
	b := &bundle{db: c.db, spy: &spyStore{Store: c.db, db: c.db}, config: c}
	b.shared = lock.New(c.backend, lock.Options{TTL: c.ttl, MaxWait: c.maxWait})
	own := lock.New(lock.NewMemory(), lock.Options{MaxWait: c.maxWait})

	lockers := map[string]strategy.Locker{strategy.SharedLock: strategy.LockerOf(b.shared), lab.MemoryLock: strategy.LockerOf(own)}
	maps.Copy(lockers, c.lockers)
	b.lockers = lockers
	if c.wrap != nil {
		lockers[strategy.SharedLock] = c.wrap(lockers[strategy.SharedLock])
	}
	shop := strategy.Shop{Store: b.spy, MaxOpen: c.maxOpen, CommitTime: cmp.Or(c.margin, c.ttl/10)}
	c.batch.Shop = shop
	c.batch.Store = sharingSpy{b.spy}
	b.batches = batch.New(c.batch)
	c.batch.Locker = lockers[strategy.SharedLock]
	b.lanes = batch.New(c.batch)

	parts := &app.Parts{Shop: shop, Redis: c.counts, Seller: b.lanes, Database: c.db}
	parts.LockWait = c.maxWait
	b.offers = lab.Offers(lab.Parts{Parts: parts, Lanes: b.lanes, Batch: b.batches, Lockers: lockers}, nil)
	t.Cleanup(func() {
		b.lanes.Close()
		b.batches.Close()
		for _, l := range []*lock.Locker{b.shared, own} {
			if err := l.Close(); err != nil {
				t.Errorf("close locker: %v", err)
			}
		}
	})
	return b.by(c.strategy)
}

// by returns the same instance, selling by another strategy.
func (b *bundle) by(strategy string) *bundle {
	other := *b
	other.config.strategy = strategy
	i := slices.IndexFunc(b.offers, func(o lab.Offer) bool { return o.Name == strategy })
	other.Service = order.New(order.Config{Store: b.db, Strategy: b.offers[i].Strategy, Ends: b.lanes})
	return &other
}

// threeShops returns three instances of one shop, with all locks that there are servers for.
func threeShops(t *testing.T, db *store.Store, change ...func(*config)) []*bundle {
	t.Helper()
	first := setup(t, db, append(change, func(c *config) { c.lockers, c.counts = locks(t, db), miniRedis(t) })...)
	return []*bundle{first, first.another(t), first.another(t)}
}

// allBy returns the same instances, selling by another strategy.
func allBy(strategy string, shops []*bundle) []*bundle {
	others := make([]*bundle, len(shops))
	for i, b := range shops {
		others[i] = b.by(strategy)
	}
	return others
}

// locks returns the other locks, beside Redis, that all instances share: on five Redis and, if the database is a
// server, in the database and in a ZooKeeper.
func locks(t *testing.T, db *store.Store) map[string]strategy.Locker {
	t.Helper()
	lockers := map[string]strategy.Locker{}
	add := func(name string, b lock.Backend) {
		locker := lock.New(b, lock.Options{TTL: 10 * time.Second, MaxWait: 5 * time.Minute})
		t.Cleanup(func() { _ = locker.Close() })
		lockers[name] = strategy.LockerOf(locker)
	}
	var nodes []redis.UniversalClient
	for range 5 {
		nodes = append(nodes, miniRedis(t))
	}
	add(lab.RedlockLock, lab.Redsync(nodes...))
	if db.IsSQLite() {
		return lockers
	}
	table := mysqllock.New(db.DB())
	if err := table.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	add(lab.MySQLLock, table)
	tree, err := zklock.New([]string{testserver.ZooKeeper(t)}, zklock.Options{Root: fmt.Sprintf("/orders-%d", time.Now().UnixNano())})
	if err != nil {
		t.Fatal(err)
	}
	add(lab.ZooKeeperLock, tree)
	return lockers
}

// miniRedis returns a client of an empty Redis of the test's own.
func miniRedis(t *testing.T) redis.UniversalClient {
	t.Helper()
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// offered are the strategies that an instance can use, and that leave payment to others. With a wrong count, a
// repeated request is refused because its own unit is sold.
func offered(b *bundle) []lab.Offer {
	return slices.DeleteFunc(slices.Clone(b.offers), func(o lab.Offer) bool {
		if o.Lock == lab.CountLock {
			return b.config.counts == nil || !o.Designed
		}
		isolated := o.Take == lab.Serializable || o.Take == lab.RepeatableRead // by stores of the teaching shop's own
		return isolated || o.Lock != "" && b.lockers[o.Lock] == nil || o.Name == "for-update" && b.db.IsSQLite()
	})
}

// purchase is a request for units of a SKU.
func purchase(buyer, key, sku string, units int64) order.Request {
	return order.Request{Buyer: buyer, Key: key, Lines: []order.Line{{SKU: sku, Units: units}}}
}

// buy is ann's.
func buy(key, sku string, units int64) order.Request { return purchase("ann", key, sku, units) }

// cart is ann's request of several lines.
func cart(key string, lines ...order.Line) order.Request {
	return order.Request{Buyer: "ann", Key: key, Lines: lines}
}

// supply creates a SKU that costs 12.50 EUR.
func (b *bundle) supply(t testing.TB, name string, units int64) {
	t.Helper()
	b.supplyAt(t, stock.Money{Minor: 1250, Currency: "EUR"}, name, units)
}

// supplyAt creates a SKU.
func (b *bundle) supplyAt(t testing.TB, price stock.Money, name string, units int64) {
	t.Helper()
	sku, err := stock.NewSKU(name, price, units, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.db.Create(t.Context(), sku); err != nil {
		t.Fatal(err)
	}
}

// limit sets a SKU's limit per buyer.
func (b *bundle) limit(t testing.TB, sku string, units int64) {
	t.Helper()
	if _, err := b.db.SetLimitPerBuyer(t.Context(), sku, units); err != nil {
		t.Fatal(err)
	}
}

// exec runs SQL that no shop does.
func (b *bundle) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := b.db.DB().ExecContext(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// mustPlace places an order. The answer must not be a replay.
func (b *bundle) mustPlace(t testing.TB, r order.Request) order.Order {
	t.Helper()
	o, replayed, err := b.Place(t.Context(), r)
	if err != nil || replayed {
		t.Fatalf("%s of %s: replayed %v, %v", r.Key, r.Buyer, replayed, err)
	}
	return o
}

// place places an order of ann's.
func (b *bundle) place(t *testing.T, key, sku string, units int64) order.Order {
	t.Helper()
	return b.mustPlace(t, buy(key, sku, units))
}

// audit returns the account of a SKU, of the last one for an empty name, and fails the test on any difference.
func (b *bundle) audit(t testing.TB, sku string) (account stock.Account) {
	t.Helper()
	err := b.db.Audit(t.Context(), sku,
		func(a stock.Account) error { account = a; return nil },
		func(d stock.Difference) error { t.Errorf("audit: %+v", d); return nil })
	if err != nil {
		t.Fatalf("audit: %v", err)
	}
	return account
}

// wantLevel compares available and reserved units of a SKU.
func (b *bundle) wantLevel(t testing.TB, sku string, available, reserved int64) {
	t.Helper()
	got, err := b.db.SKU(t.Context(), sku)
	if err != nil || got.Available != available || got.Reserved != reserved {
		t.Errorf("%s: %v, %v, want %d available and %d reserved", sku, got.Level, err, available, reserved)
	}
}

// raiseFence makes the database remember a fence that no lease had, of a supply.
func (b *bundle) raiseFence(t *testing.T, name string, fence int64) {
	t.Helper()
	b.exec(t, "UPDATE skus SET fence = ? WHERE name = ?", fence, name)
	b.exec(t, "UPDATE movements SET fence = ? WHERE sku = ? AND kind = 'supply'", fence, name)
}

// payment asks that an order be ended, without an idempotency key.
func payment(o order.Order) order.EndRequest { return withKey(o, "") }

func withKey(o order.Order, key string) order.EndRequest {
	return order.EndRequest{Buyer: o.Buyer, OrderID: o.ID, Key: key}
}

// makeDue ends the orders' time, by the database's clock, in this order.
func (b *bundle) makeDue(t *testing.T, orders ...order.Order) {
	t.Helper()
	for i, o := range orders {
		b.exec(t, "UPDATE orders SET expires_at = ? WHERE id = ?", fmt.Sprintf("2020-01-01 00:00:00.%06d", i), o.ID)
	}
}

// wantEnd fails unless the order has this status, and its lines, the SKU this level, and the audit is clean.
func (b *bundle) wantEnd(t *testing.T, o order.Order, status order.Status, sku string, level stock.Level) {
	t.Helper()
	now, err := b.Order(t.Context(), o.Buyer, o.ID)
	if err != nil || now.Status != status || !slices.Equal(now.Lines, o.Lines) {
		t.Errorf("order is %q, %v, %v, want %q, %v", now.Status, now.Lines, err, status, o.Lines)
	}
	if got := b.audit(t, sku).Level; got != level {
		t.Errorf("level %v, want %v", got, level)
	}
}

// afterRead does something after the next read of the stock.
func (b *bundle) afterRead(do func()) {
	b.spy.afterLevels = func() {
		b.spy.afterLevels = nil
		do()
	}
}

// placed is an answer to Place.
type placed struct {
	order    order.Order
	replayed bool
	err      error
}

func nth(i int) string { return fmt.Sprint("buyer-", i) }

// await waits until a number is what the test wants.
func await(t *testing.T, what string, want int, got func() int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); got() != want; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d, want %d", what, got(), want)
		}
	}
}

// wantErr fails the test unless err is want.
func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// atOnce calls f n times, with 0 to n-1, at the same moment, and waits for all.
func atOnce(n int, f func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

// spyStore is a Store that calls a test's functions before and after its work. The functions may be nil.
type spyStore struct {
	order.Store
	db           *store.Store
	beforeLevels func()
	afterLevels  func()
	beforeClaims func()
	beforeTx     func() error // its error is the transaction's
	afterTx      func(err error)
	aroundTx     func(order.Tx) order.Tx
	beforeCommit func()
	refuseCommit error                 // instead of the COMMIT
	answer       func(err error) error // another answer to the transaction
}

// Levels implements order.Store.
func (s *spyStore) Levels(ctx context.Context, lines ...order.Line) (order.Levels, error) {
	call(s.beforeLevels)
	levels, err := s.Store.Levels(ctx, lines...)
	call(s.afterLevels)
	return levels, err
}

// UsedKeys implements order.Store.
func (s *spyStore) UsedKeys(ctx context.Context, keys ...order.BuyerKey) (map[order.BuyerKey]order.UsedKey, error) {
	call(s.beforeClaims)
	return s.Store.UsedKeys(ctx, keys...)
}

// InTx implements order.Store.
func (s *spyStore) InTx(ctx context.Context, fn func(order.Tx) error) error {
	return s.in(ctx, s.Store, fn)
}

// sharingSpy is the same for transactions that serve several requests.
type sharingSpy struct{ *spyStore }

// InTx implements order.Store.
func (s sharingSpy) InTx(ctx context.Context, fn func(order.Tx) error) error {
	return s.in(ctx, s.db.Sharing(), fn)
}

func (s *spyStore) in(ctx context.Context, in order.Store, fn func(order.Tx) error) error {
	if s.beforeTx != nil {
		if err := s.beforeTx(); err != nil {
			return err
		}
	}
	err := in.InTx(ctx, func(tx order.Tx) error {
		if s.aroundTx != nil {
			tx = s.aroundTx(tx)
		}
		err := fn(tx)
		if err == nil {
			call(s.beforeCommit)
		}
		return cmp.Or(err, s.refuseCommit)
	})
	if s.answer != nil {
		err = s.answer(err)
	}
	if s.afterTx != nil {
		s.afterTx(err)
	}
	return err
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// gathering is an instance that sells by lanes, whose first batch stands still, so that a test decides who is
// in the next one.
type gathering struct {
	*bundle
	begun   atomic.Int64 // transactions
	gate    chan struct{}
	all     sync.WaitGroup
	served  atomic.Int64
	answers []*placed // in the order of arrival
}

func gather(t *testing.T, db *store.Store, change ...func(*config)) *gathering {
	t.Helper()
	g := &gathering{bundle: setup(t, db, append([]func(*config){byLanes}, change...)...), gate: make(chan struct{})}
	g.spy.beforeTx = func() error {
		g.begun.Add(1)
		<-g.gate
		return nil
	}
	g.supply(t, "first", 1)
	g.all.Go(func() {
		_, _, err := g.Place(t.Context(), purchase("first", "key", "first", 1))
		wantErr(t, "first", err, nil)
	})
	await(t, "begun", 1, func() int { return int(g.begun.Load()) })
	return g
}

// join puts a request at the end of the queue.
func (g *gathering) join(ctx context.Context, t *testing.T, r order.Request) {
	t.Helper()
	a, before := new(placed), g.queued()
	g.answers = append(g.answers, a)
	g.all.Go(func() {
		a.order, a.replayed, a.err = g.Place(ctx, r)
		g.served.Add(1)
	})
	await(t, "queued", before+1, g.queued)
}

// queued counts the requests in all queues of the instance.
func (b *bundle) queued() int { return b.lanes.Queued() + b.batches.Queued() }

// serve lets the batches go on and waits for all answers.
func (g *gathering) serve() {
	close(g.gate)
	g.all.Wait()
}

func (g *gathering) want(t *testing.T, what string, i int, want error) {
	t.Helper()
	if got := g.answers[i]; want == nil && got.order.ID == "" || !errors.Is(got.err, want) {
		t.Errorf("%s: got order %q, %v, want %v", what, got.order.ID, got.err, want)
	}
}

// together places orders in one batch: another one, of a SKU, stands still meanwhile, and then fails before its first
// statement.
func (g *gathering) together(t *testing.T, sku string, all ...order.Request) {
	t.Helper()
	held, gate, begun := errors.New("held"), make(chan struct{}), make(chan struct{})
	g.spy.beforeTx = func() error {
		g.spy.beforeTx = nil
		close(begun)
		<-gate
		return held
	}
	g.all.Go(func() {
		_, _, err := g.Place(t.Context(), purchase("holder", "key", sku, 1))
		wantErr(t, "holder", err, held)
	})
	<-begun
	g.answers = nil
	for _, r := range all {
		g.join(t.Context(), t, r)
	}
	close(gate)
	g.all.Wait()
}

// maxOpen lets this many orders of a buyer be pending.
func maxOpen(n int) func(*config) { return func(c *config) { c.maxOpen = n } }

// wantRefused fails unless the order is refused with this error, in these words.
func (b *bundle) wantRefused(t *testing.T, r order.Request, want error, words string) {
	t.Helper()
	_, _, err := b.Place(t.Context(), r)
	if !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), words) {
		t.Errorf("place %s: got %v, want %v with %q", r.Key, err, want, words)
	}
}

func byLanes(c *config) { c.strategy = "lanes" }

// wantFence fails unless the units of an order were taken under a fence, or under none.
func (b *bundle) wantFence(t *testing.T, what string, o order.Order, leased bool) {
	t.Helper()
	var fence int64
	row := b.db.DB().QueryRowContext(t.Context(), "SELECT fence FROM movements WHERE order_id = ? AND kind = 'reserve'", o.ID)
	if err := row.Scan(&fence); err != nil || (fence > 0) != leased {
		t.Errorf("%s: got fence %d, %v, want a fence: %v", what, fence, err, leased)
	}
}

// expireIn moves the end of a pending order to d from now, by the database's clock.
func (b *bundle) expireIn(t *testing.T, o order.Order, d time.Duration) {
	t.Helper()
	now, err := b.db.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, "UPDATE orders SET expires_at = ? WHERE id = ?", now.Add(d).UTC().Format("2006-01-02 15:04:05.000000"), o.ID)
}

// wantKeys fails unless this many keys are on record.
func (b *bundle) wantKeys(t *testing.T, want int64) {
	t.Helper()
	var got int64
	err := b.db.DB().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM idempotency_keys").Scan(&got)
	if err != nil || got != want {
		t.Errorf("got %d keys, %v, want %d", got, err, want)
	}
}

// pays returns a payment of the order's total.
func pays(id string, o order.Order) order.Payment {
	return order.Payment{ID: id, OrderID: o.ID, Amount: o.Total}
}

// find returns ann's order.
func (b *bundle) find(t testing.TB, id string) order.Order {
	t.Helper()
	o, err := b.Order(t.Context(), "ann", id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
