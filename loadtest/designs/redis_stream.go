package designs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
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
		Name:    "redis-stream-" + answered,
		About:   "A script takes the units in Redis and writes to a Stream; the buyer is answered " + before + " the INSERT.",
		Source:  "as articles on flash sales describe it",
		Wrong:   answered == "early",
		Carts:   true,
		Redis:   true,
		Prepare: countInRedis,
		Open: func(ctx context.Context, on Servers) (Seller, error) {
			s := &stream{on: on, key: "designs:orders:" + answered, late: answered == "late", ended: make(chan struct{})}
			if err := s.join(ctx); err != nil {
				return nil, err
			}
			go s.write(context.WithoutCancel(ctx))
			return s, nil
		},
	}
}

func countKey(sku string) string { return "designs:count:" + sku }

func countInRedis(ctx context.Context, on Servers, units map[string]int64) error {
	for sku, n := range units {
		if err := on.Redis.Set(ctx, countKey(sku), n, 0).Err(); err != nil {
			return err
		}
	}
	return nil
}

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
	ended   chan struct{} // closed by the writer
	err     error         // why the writer ended before everything was written
}

// join makes the Stream and the group where they are missing: at first, and after a FLUSHALL.
func (s *stream) join(ctx context.Context) error {
	err := s.on.Redis.XGroupCreateMkStream(ctx, s.key, writers, "0").Err()
	if redis.HasErrorPrefix(err, "BUSYGROUP") {
		return nil
	}
	return err
}

// Buy implements Seller.
func (s *stream) Buy(ctx context.Context, o Order) (bool, error) {
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

// count loads the counts that Redis has lost from the database, which does not know yet what the writer has not
// written.
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

// write inserts what the Stream brings until Close, and then until nothing is left. After an error it begins again
// with what it has read and not acknowledged, unless it is to close.
func (s *stream) write(ctx context.Context) {
	defer close(s.ended)
	for again := true; ; {
		entries, err := s.read(ctx, again)
		if err == nil {
			err = s.insertAll(ctx, entries)
		}
		switch {
		case err != nil && s.closing.Load():
			s.err = fmt.Errorf("orders stay in %s until the next start: %w", s.key, err)
			return
		case err != nil:
			time.Sleep(50 * time.Millisecond)
			_ = s.join(ctx) // if it fails, the next read does as well
			again = true
		case again && len(entries) == 0:
			again = false
		case len(entries) == 0 && s.closing.Load():
			return
		}
	}
}

// read returns the next entries: those that were read already and are not acknowledged, or new ones, for which it
// waits.
func (s *stream) read(ctx context.Context, again bool) ([]redis.XMessage, error) {
	if again {
		entries, _, err := s.on.Redis.XAutoClaim(ctx, &redis.XAutoClaimArgs{
			Stream: s.key, Group: writers, Consumer: "writer", Start: "0", Count: batchSize,
		}).Result()
		return entries, err
	}
	read, err := s.on.Redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Streams: []string{s.key, ">"}, Group: writers, Consumer: "writer", Count: batchSize, Block: 50 * time.Millisecond,
	}).Result()
	if errors.Is(err, redis.Nil) { // nothing came
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return read[0].Messages, nil
}

// insertAll writes the orders of the entries, answers their buyers, and then acknowledges the entries.
func (s *stream) insertAll(ctx context.Context, entries []redis.XMessage) error {
	if len(entries) == 0 {
		return nil
	}
	var ids []string
	var orders []Order
	for _, entry := range entries {
		var o Order
		text, _ := entry.Values["order"].(string)
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			return err
		}
		ids, orders = append(ids, entry.ID), append(orders, o)
	}
	if err := s.insert(ctx, orders); err != nil {
		return err
	}
	if err := s.on.Redis.XAck(ctx, s.key, writers, ids...).Err(); err != nil {
		return err
	}
	return s.on.Redis.XDel(ctx, s.key, ids...).Err()
}

// errUneven means that an order of a batch is in the database already, or that units are missing for one.
var errUneven = errors.New("the orders have to be written one by one")

// insert writes orders by one transaction or, where one of them is known already or has no units left, one by one.
func (s *stream) insert(ctx context.Context, orders []Order) error {
	err := inTx(ctx, s.on.DB, func(tx *sql.Tx) error {
		fresh, err := insertBy(ctx, tx, "INSERT IGNORE", orders)
		if err == nil && fresh < int64(len(orders)) {
			err = errUneven
		}
		if err != nil {
			return err
		}
		units, sorted := counts(orders)
		for _, sku := range sorted {
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

// Close implements Seller.
func (s *stream) Close() error {
	s.closing.Store(true)
	<-s.ended
	return s.err
}
