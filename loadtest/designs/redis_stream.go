package designs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
)

// inStream lets Redis decide, as articles on flash sales describe it. A script takes the units and
// appends the order to a Stream, in one step. A writer reads the Stream as a consumer group, inserts up
// to 256 orders by one transaction, and acknowledges them with XACK.
//
// The cost: two places know what is sold. An early answer is only as safe as the memory of one Redis; a late one waits
// for the INSERT. If Redis has forgotten sales, the guarded UPDATE refuses orders that buyers were told they have.
func inStream(answered string) Design {
	before := map[string]string{"early": "before", "late": "after"}[answered]
	return Design{
		Name:  "redis-stream-" + answered,
		About: "A script takes the units in Redis and writes to a Stream; the buyer is answered " + before + " the INSERT.",
		Wrong: answered == "early",
		Carts: true,
		Redis: true,
		Open: func(ctx context.Context, on Servers) Seller {
			s := &stream{on: on, key: "designs:orders:" + answered}
			s.workers.Go(func() { s.failed = s.write(context.WithoutCancel(ctx)) })
			if answered == "early" {
				return Seller{s.take, s.close}
			}
			late := func(ctx context.Context, o Order) error {
				return s.await(ctx, o, func() error { return s.take(ctx, o) })
			}
			return Seller{late, s.close}
		},
	}
}

type stream struct {
	replies // its worker is the writer
	on      Servers
	key     string
}

func countKey(sku string) string { return "designs:count:" + sku }

// takeScript takes a unit of each SKU and appends the order to the Stream, KEYS[1]. The other KEYS are the counts.
var takeScript = redis.NewScript(`
	for i = 2, #KEYS do
		local left = redis.call('GET', KEYS[i])
		if not left then return -1 end
		if tonumber(left) < 1 then return 0 end
	end
	for i = 2, #KEYS do redis.call('DECR', KEYS[i]) end
	redis.call('XADD', KEYS[1], '*', 'order', ARGV[1])
	return 1`)

// take lets the script decide.
func (s *stream) take(ctx context.Context, o Order) error {
	keys := []string{s.key}
	for _, sku := range o.SKUs {
		keys = append(keys, countKey(sku))
	}
	for {
		answer, err := takeScript.Run(ctx, s.on.Redis, keys, o).Int()
		switch {
		case err != nil || answer == 1:
			return err
		case answer == 0:
			return errSoldOut
		}
		// Redis has not counted these SKUs, or has forgotten. The number in the database is too high by the
		// orders not yet written.
		for _, sku := range o.SKUs {
			var left int64
			err := s.on.DB.QueryRowContext(ctx, "SELECT available FROM skus WHERE name = ?", sku).Scan(&left)
			if err == nil {
				err = s.on.Redis.SetNX(ctx, countKey(sku), left, 0).Err()
			}
			if err != nil {
				return err
			}
		}
	}
}

const writers = "writers" // the consumer group

// write inserts the orders of the Stream until Close, and then until none is left. At first, and after an error, it
// begins with the entries that were read before and not acknowledged. An error after Close ends it.
func (s *stream) write(ctx context.Context) error {
	const unacknowledged, fresh = "0", ">"
	for from := unacknowledged; ; {
		if from == unacknowledged { // there may be no Stream; if this fails, the read does as well
			_ = s.on.Redis.XGroupCreateMkStream(ctx, s.key, writers, "0").Err()
		}
		n, err := s.insertNext(ctx, from)
		switch closing := s.closing.Load(); {
		case err != nil && closing:
			return fmt.Errorf("orders stay in %s until the next start: %w", s.key, err)
		case err != nil:
			time.Sleep(50 * time.Millisecond)
			from = unacknowledged
		case n == 0 && from == unacknowledged:
			from = fresh
		case n == 0 && closing:
			return nil
		}
	}
}

// insertNext writes the next orders of the Stream, answers their buyers, and then acknowledges them. It waits for fresh
// ones.
func (s *stream) insertNext(ctx context.Context, from string) (n int, err error) {
	read, err := s.on.Redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Streams: []string{s.key, from}, Group: writers, Consumer: "writer", Count: 256, Block: 50 * time.Millisecond,
	}).Result()
	if errors.Is(err, redis.Nil) { // nothing came
		return 0, nil
	}
	if err != nil || len(read[0].Messages) == 0 {
		return 0, err
	}
	var ids, texts []string
	for _, entry := range read[0].Messages {
		text, _ := entry.Values["order"].(string)
		ids, texts = append(ids, entry.ID), append(texts, text)
	}
	orders, err := readOrders(texts)
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

// insert writes orders by one transaction or, where one of them is known already or has no units left, one by one.
func (s *stream) insert(ctx context.Context, orders []Order) error {
	err := inTx(ctx, s.on.DB, func(tx *sql.Tx) error {
		units := map[string]int64{}
		for _, o := range orders {
			for _, sku := range o.SKUs {
				units[sku]++
			}
		}
		err := insertOrders(ctx, tx, orders...)
		for _, sku := range slices.Sorted(maps.Keys(units)) { // the order in which every transaction locks rows
			if err == nil {
				err = takeUnits(ctx, tx, units[sku], sku)
			}
		}
		return err
	})
	refused, _ := errors.AsType[*mysql.MySQLError](err)
	known, soldOut := refused != nil && refused.Number == 1062, errors.Is(err, errSoldOut)
	switch {
	case (known || soldOut) && len(orders) > 1:
		for _, o := range orders {
			if err := s.insert(ctx, []Order{o}); err != nil {
				return err
			}
		}
		return nil
	case known:
		err = nil // the writer has crashed between the COMMIT and XACK
	case err != nil && !soldOut:
		return err
	}
	s.answer(err, orders...)
	return nil
}
