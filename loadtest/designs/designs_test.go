package designs

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/shops"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asSeller {
		goleak.VerifyTestMain(sellerProcess{})
	}
	goleak.VerifyTestMain(testserver.Wrap(m))
}

var redisDatabases atomic.Int64

// ownRedis returns the URL of a database that no other test uses.
func ownRedis(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("redis://%s/%d", testserver.Redis(t), redisDatabases.Add(1))
}

// setup returns servers with the shop's schema.
func setup(t *testing.T) Servers {
	t.Helper()
	return connected(t, testserver.MySQL(t), ownRedis(t))
}

// connected returns servers until the test ends.
func connected(t *testing.T, dsn, addr string) Servers {
	t.Helper()
	var opened shops.Undo
	t.Cleanup(func() { testserver.Must(t, opened.Close()) })
	on, err := connect(t.Context(), dsn, addr, &opened)
	testserver.Must(t, err)
	return on
}

// open puts units of fresh SKUs up for sale, and opens a design.
func open(t *testing.T, on Servers, d Design, units ...int64) (s Seller, skus []string) {
	t.Helper()
	stock := map[string]int64{}
	for i, n := range units {
		skus = append(skus, fmt.Sprintf("sku-%d-%s", i, uuid.NewString()))
		stock[skus[i]] = n
	}
	testserver.Must(t, d.putUpForSale(t.Context(), on, stock))
	return d.open(t.Context(), on), skus
}

// each runs a test for each design that is chosen.
func each(t *testing.T, chosen func(Design) bool, test func(t *testing.T, on Servers, d Design)) {
	t.Parallel()
	on := setup(t)
	for _, d := range All() {
		if chosen(d) {
			t.Run(d.Name, func(t *testing.T) {
				t.Parallel()
				test(t, on, d)
			})
		}
	}
}

// design returns the design of a name.
func design(name string) Design {
	all := All()
	return all[slices.IndexFunc(all, func(d Design) bool { return d.Name == name })]
}

func newOrder(buyer int, skus ...string) Order {
	return Order{ID: uuid.NewString(), Buyer: fmt.Sprint("buyer-", buyer), SKUs: skus}
}

// crowdBuys lets 64 buyers buy at the same time, each this often, and returns how many orders were acknowledged.
func crowdBuys(t *testing.T, s Seller, times int, skus ...string) (sold int64) {
	t.Helper()
	var all sync.WaitGroup
	var acknowledged atomic.Int64
	for i := range 64 {
		all.Go(func() {
			for range times {
				switch err := s.Buy(t.Context(), newOrder(i, skus...)); {
				case err == nil:
					acknowledged.Add(1)
				case !errors.Is(err, errSoldOut):
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	return acknowledged.Load()
}

// wantRows fails unless the orders of a SKU, and what its row has given away, are this many. A pool or bucket may
// hold more.
func wantRows(t *testing.T, on Servers, sku string, orders int64) {
	t.Helper()
	var got, reserved, whole int64
	err := on.DB.QueryRowContext(t.Context(), `SELECT
		(SELECT COUNT(*) FROM order_lines JOIN orders ON id = order_id WHERE sku = ? AND status = 'pending'),
		reserved, available + reserved = supplied FROM skus WHERE name = ?`, sku, sku).Scan(&got, &reserved, &whole)
	if err != nil || got != orders || reserved < orders || whole != 1 {
		t.Errorf("%s: %d orders and %d units reserved, %v; want %d of both", sku, got, reserved, err, orders)
	}
}

// Every design but buckets sells all of its stock to a crowd, and no design sells more; then each buyer is refused.
func TestDesigns_sellTheirStock(t *testing.T) {
	each(t, func(Design) bool { return true }, func(t *testing.T, on Servers, d Design) {
		const stock = 100
		s, skus := open(t, on, d, stock)
		sold := crowdBuys(t, s, 3, skus[0])
		if sold > stock || sold < stock && d.Name != "buckets" {
			t.Errorf("%d orders acknowledged, want %d", sold, stock)
		}
		if d.Name != "buckets" {
			if err := s.Buy(t.Context(), newOrder(0, skus[0])); !errors.Is(err, errSoldOut) {
				t.Errorf("after the last unit: got %v, want sold out", err)
			}
		}
		testserver.Must(t, s.Close())
		wantRows(t, on, skus[0], sold)
	})
}

// A cart is sold as a whole or not at all: the SKU of which there is plenty loses no more units than the scarce one.
func TestDesigns_carts(t *testing.T) {
	each(t, func(d Design) bool { return d.Carts }, func(t *testing.T, on Servers, d Design) {
		s, skus := open(t, on, d, 200, 16, 200) // 16 units: one in each bucket
		sold := crowdBuys(t, s, 1, skus...)
		if sold > 16 || sold < 16 && d.Name != "buckets" {
			t.Errorf("%d carts acknowledged, want 16", sold)
		}
		testserver.Must(t, s.Close())
		for _, sku := range skus {
			wantRows(t, on, sku, sold)
		}
	})
}

// A pool of 1,000 rows is filled up when it is empty, by many buyers at the same time, and no unit is sold twice.
func TestUnitRows_pool(t *testing.T) {
	t.Parallel()
	on := setup(t)
	s, skus := open(t, on, design("unit-rows"), poolSize+90)
	_, err := on.DB.ExecContext(t.Context(), "DELETE FROM design_units WHERE sku = ? AND unit >= 10", skus[0])
	testserver.Must(t, err)
	if sold := crowdBuys(t, s, 2, skus[0]); sold != 100 {
		t.Errorf("%d orders acknowledged, want 100", sold)
	}
	wantRows(t, on, skus[0], 100)
}

// While a transaction has locked the last unit, the naive design says that the SKU is sold out. The right one waits,
// and sells the unit when the transaction rolls back.
func TestUnitRows_rolledBack(t *testing.T) {
	t.Parallel()
	on := setup(t)
	for name, want := range map[string]bool{"unit-rows-naive": false, "unit-rows": true} {
		s, skus := open(t, on, design(name), 1)
		held, err := on.DB.BeginTx(t.Context(), nil)
		testserver.Must(t, err)
		_, err = held.ExecContext(t.Context(), "DELETE FROM design_units WHERE sku = ?", skus[0])
		testserver.Must(t, err)
		answer := make(chan bool, 1)
		go func() { answer <- s.Buy(t.Context(), newOrder(0, skus[0])) == nil }()
		if want {
			awaitLockWait(t, on.DB)
		} else if <-answer {
			t.Errorf("%s: sold a unit that is locked", name)
		}
		testserver.Must(t, held.Rollback())
		if want && !<-answer {
			t.Errorf("%s: sold no unit after the rollback", name)
		}
	}
}

// awaitLockWait returns when a transaction of this test's schema waits for a lock.
func awaitLockWait(t *testing.T, db *sql.DB) {
	t.Helper()
	var waiting int
	for waiting == 0 {
		testserver.Must(t, db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM performance_schema.data_lock_waits
			JOIN performance_schema.data_locks ON engine_lock_id = requesting_engine_lock_id
			WHERE object_schema = DATABASE()`).Scan(&waiting))
	}
}

// An order that the script has taken, and a writer has read before it crashed, is inserted once by the next writer:
// whether the first one has inserted it or not.
func TestStream_crashed(t *testing.T) {
	t.Parallel()
	on := setup(t)
	d := design("redis-stream-late")
	first, skus := open(t, on, d, 10)
	testserver.Must(t, first.Close())
	crashed := &stream{on: on, key: "designs:orders:late"}
	var orders []Order
	for i := range 3 {
		orders = append(orders, newOrder(i, skus[0]))
		testserver.Must(t, crashed.take(t.Context(), orders[i]))
	}
	read := redis.XReadGroupArgs{Group: writers, Consumer: "writer", Streams: []string{crashed.key, ">"}}
	if entries, err := on.Redis.XReadGroup(t.Context(), &read).Result(); err != nil || len(entries[0].Messages) != 3 {
		t.Fatalf("read %+v, %v, want 3 entries", entries, err)
	}
	testserver.Must(t, crashed.insert(t.Context(), orders[:1]))
	testserver.Must(t, d.open(t.Context(), on).Close())
	wantRows(t, on, skus[0], 3)
	if left, err := on.Redis.Get(t.Context(), countKey(skus[0])).Int(); err != nil || left != 7 {
		t.Errorf("Redis counts %d units, %v, want 7", left, err)
	}
}

// A Redis that counts more units than there are, as after a failover, does not oversell, since the writer refuses.
// After a FLUSHALL, the count comes from the database, and a new Stream is made.
func TestStream_forgotten(t *testing.T) {
	t.Parallel()
	on := setup(t)
	s, skus := open(t, on, design("redis-stream-late"), 20)
	testserver.Must(t, on.Redis.Set(t.Context(), countKey(skus[0]), 50, redis.KeepTTL).Err())
	if sold := crowdBuys(t, s, 1, skus[0]); sold != 20 {
		t.Errorf("%d orders acknowledged, want 20", sold)
	}
	_, err := on.DB.ExecContext(t.Context(), "UPDATE skus SET supplied = 25, available = 5 WHERE name = ?", skus[0])
	testserver.Must(t, err)
	testserver.Must(t, on.Redis.FlushDB(t.Context()).Err())
	if sold := crowdBuys(t, s, 1, skus[0]); sold != 5 {
		t.Errorf("after a FLUSHALL: %d orders acknowledged, want 5", sold)
	}
	testserver.Must(t, s.Close())
	wantRows(t, on, skus[0], 25)
}
