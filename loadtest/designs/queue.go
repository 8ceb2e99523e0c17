package designs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// queuePerSKU has a list in Redis for each SKU, and one consumer for each list, so that no transactions compete for the
// SKU's row. The consumer takes all orders that wait, up to 64, decides them against the row by one transaction, and
// answers. Articles on message queues in flash sales describe it.
//
// The cost: an order lost with Redis is never answered, a cart has no queue of its own, and several instances have to
// elect the consumer of each SKU.
func queuePerSKU() Design {
	return Design{
		Name:  "queue-per-sku",
		About: "A list in Redis for each SKU; its one consumer decides against the database row, in batches.",
		Open: func(_ context.Context, on Servers) Seller {
			s := &queues{on: on}
			return Seller{s.buy, s.close}
		},
	}
}

type queues struct {
	replies // the workers are the consumers
	on      Servers
	served  sync.Map // the SKUs that have a consumer
}

func (s *queues) buy(ctx context.Context, o Order) error {
	sku := o.SKUs[0]
	list := "designs:queue:" + sku
	if _, served := s.served.LoadOrStore(sku, true); !served {
		s.workers.Go(func() { s.consume(context.WithoutCancel(ctx), sku, list) })
	}
	return s.await(ctx, o, func() error { return s.on.Redis.RPush(ctx, list, o).Err() })
}

// consume decides the orders of a SKU until Close.
func (s *queues) consume(ctx context.Context, sku, list string) {
	for !s.closing.Load() {
		// go-redis' BLMPop waits for a second at least, for which Close would wait.
		pop := redis.NewKeyValuesCmd(ctx, "BLMPOP", 0.1, 1, list, "LEFT", "COUNT", 64)
		pop.SetFirstKeyPos(3)
		if err := s.on.Redis.Process(ctx, pop); err != nil {
			if !errors.Is(err, redis.Nil) { // Redis does not answer
				time.Sleep(50 * time.Millisecond)
			}
			continue
		}
		_, waiting := pop.Val()
		orders, err := readOrders(waiting)
		var sold int
		if err == nil {
			sold, err = s.decide(ctx, sku, orders)
		}
		s.answer(err, orders[:sold]...)
		s.answer(cmp.Or(err, errSoldOut), orders[sold:]...)
	}
}

// decide sells to the first of the orders, as many as there are units.
func (s *queues) decide(ctx context.Context, sku string, orders []Order) (sold int, err error) {
	err = inTx(ctx, s.on.DB, func(tx *sql.Tx) error {
		var left int
		err := tx.QueryRowContext(ctx, "SELECT available FROM skus WHERE name = ? FOR UPDATE", sku).Scan(&left)
		sold = min(left, len(orders))
		if err != nil || sold == 0 {
			return err
		}
		if err := takeUnits(ctx, tx, int64(sold), sku); err != nil {
			return err
		}
		return insertOrders(ctx, tx, orders[:sold]...)
	})
	return sold, err
}
