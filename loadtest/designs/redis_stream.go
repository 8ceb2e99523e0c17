package designs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// inStream lets Redis decide. A script takes the units and appends the order to a Stream, in one step. A writer reads
// the Stream as a consumer group, inserts up to 256 orders by one transaction, and acknowledges them with XACK. Redis
// is fast, and the database sees no crowd. Articles on flash sales describe it, mostly with the early answer.
//
// The cost: two places know what is sold. If the buyer is answered as soon as the script has run, an order is only as
// safe as the memory of one Redis. If the buyer is answered after the INSERT, nothing that was acknowledged can be
// lost, and the buyer waits as long as in a batch of the database. The UPDATE is guarded, so that a Redis that has
// forgotten sales does not oversell: the writer then refuses orders, which the early buyers already believe to have.
func inStream(answered string) Design {
	before := map[string]string{"early": "before", "late": "after"}[answered]
	return Design{
		Name:   "redis-stream-" + answered,
		About:  "A script takes the units in Redis and writes to a Stream; the buyer is answered " + before + " the INSERT.",
		Source: "as articles on flash sales describe it",
		Wrong:  answered == "early",
		Carts:  true,
		Redis:  true,
		Open: func(ctx context.Context, on Servers) (Seller, error) {
			s := &stream{on: on, key: "designs:orders:" + answered, late: answered == "late"}
			if err := s.join(ctx); err != nil {
				return Seller{}, err
			}
			s.writer.Go(func() { s.write(context.WithoutCancel(ctx)) })
			return Seller{s.buy, s.close}, nil
		},
	}
}

func countKey(sku string) string { return "designs:count:" + sku }

// takeScript takes a unit of each SKU, whose counts are KEYS but the first, and appends the order to the Stream.
var takeScript = redis.NewScript(`
	for i = 2, #KEYS do
		local left = redis.call('GET', KEYS[i])
		if not left then return -1 end
		if tonumber(left) < 1 then return 0 end
	end
	for i = 2, #KEYS do redis.call('DECR', KEYS[i]) end
	redis.call('XADD', KEYS[1], '*', 'order', ARGV[1])
	return 1`)

const (
	writers   = "writers" // the consumer group
	batchSize = 256
)

type stream struct {
	on      Servers
	key     string
	late    bool
	desk    desk
	closing atomic.Bool
	writer  sync.WaitGroup
	err     error // why the writer ended before everything was written
}

// join makes the Stream and the group where they are missing: at first, and after a FLUSHALL.
func (s *stream) join(ctx context.Context) error {
	err := s.on.Redis.XGroupCreateMkStream(ctx, s.key, writers, "0").Err()
	if redis.HasErrorPrefix(err, "BUSYGROUP") {
		return nil
	}
	return err
}

func (s *stream) buy(ctx context.Context, o Order) (bool, error) {
	if s.late {
		return s.desk.await(ctx, o, func() (bool, error) { return s.take(ctx, o) })
	}
	return s.take(ctx, o)
}

func (s *stream) take(ctx context.Context, o Order) (bool, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return false, err
	}
	keys := []string{s.key}
	for _, sku := range o.SKUs {
		keys = append(keys, countKey(sku))
	}
	for {
		switch answer, err := takeScript.Run(ctx, s.on.Redis, keys, text).Int(); {
		case err != nil:
			return false, err
		case answer >= 0:
			return answer == 1, nil
		}
		if err := s.count(ctx, o.SKUs); err != nil {
			return false, err
		}
	}
}

// count loads counts that Redis does not have, or has lost, from the database, which does not know yet what the writer
// has not written.
func (s *stream) count(ctx context.Context, skus []string) error {
	for _, sku := range skus {
		var left int64
		err := s.on.DB.QueryRowContext(ctx, "SELECT available FROM skus WHERE name = ?", sku).Scan(&left)
		if err == nil {
			err = s.on.Redis.SetNX(ctx, countKey(sku), left, 0).Err()
		}
		if err != nil {
			return fmt.Errorf("load the count of SKU %q: %w", sku, err)
		}
	}
	return nil
}

// write inserts what the Stream brings until Close, and then until nothing is left. At first, and after an error, it
// begins with the entries that were read before and not acknowledged. An error after Close ends it.
func (s *stream) write(ctx context.Context) {
	const unacknowledged, fresh = "0", ">"
	for from := unacknowledged; ; {
		n, err := s.insertNext(ctx, from)
		switch closing := s.closing.Load(); {
		case err != nil && closing:
			s.err = fmt.Errorf("orders stay in %s until the next start: %w", s.key, err)
			return
		case err != nil:
			time.Sleep(50 * time.Millisecond)
			_ = s.join(ctx) // if it fails, the next read does as well
			from = unacknowledged
		case n == 0 && from == unacknowledged:
			from = fresh
		case n == 0 && closing:
			return
		}
	}
}

// insertNext writes the next orders of the Stream, answers their buyers, and then acknowledges them. It waits for fresh
// ones.
func (s *stream) insertNext(ctx context.Context, from string) (n int, err error) {
	read, err := s.on.Redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Streams: []string{s.key, from}, Group: writers, Consumer: "writer", Count: batchSize, Block: 50 * time.Millisecond,
	}).Result()
	if errors.Is(err, redis.Nil) { // nothing came
		return 0, nil
	}
	if err != nil || len(read[0].Messages) == 0 {
		return 0, err
	}
	var ids []string
	var orders []Order
	for _, entry := range read[0].Messages {
		var o Order
		text, _ := entry.Values["order"].(string)
		err = errors.Join(err, json.Unmarshal([]byte(text), &o))
		ids, orders = append(ids, entry.ID), append(orders, o)
	}
	if err == nil {
		err = s.insert(ctx, orders)
	}
	if err == nil {
		err = s.on.Redis.XAck(ctx, s.key, writers, ids...).Err()
	}
	if err == nil {
		err = s.on.Redis.XDel(ctx, s.key, ids...).Err()
	}
	return len(ids), err
}

// errUneven means that an order of a batch is in the database already, or that units are missing for one.
var errUneven = errors.New("the orders have to be written one by one")

// insert writes orders by one transaction or, where one of them is known already or has no units left, one by one.
func (s *stream) insert(ctx context.Context, orders []Order) error {
	err := inTx(ctx, s.on.DB, func(tx *sql.Tx) error {
		fresh, err := insertOrders(ctx, tx, "INSERT IGNORE", orders...)
		if err == nil && fresh < int64(len(orders)) {
			err = errUneven
		}
		if err != nil {
			return err
		}
		units := map[string]int64{}
		for _, o := range orders {
			for _, sku := range o.SKUs {
				units[sku]++
			}
		}
		for _, sku := range slices.Sorted(maps.Keys(units)) { // the order in which every transaction locks rows
			if err := takeUnits(ctx, tx, sku, units[sku]); err != nil {
				return err
			}
		}
		return nil
	})
	switch uneven, soldOut := errors.Is(err, errUneven), errors.Is(err, errSoldOut); {
	case (uneven || soldOut) && len(orders) > 1:
		for _, o := range orders {
			if err := s.insert(ctx, []Order{o}); err != nil {
				return err
			}
		}
		return nil
	case err == nil, uneven, soldOut:
		s.desk.answer(verdict{sold: !soldOut}, orders...)
		return nil
	}
	return err
}

func (s *stream) close() error {
	s.closing.Store(true)
	s.writer.Wait()
	return s.err
}
