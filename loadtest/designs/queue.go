package designs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// queuePerSKU has a list in Redis for each SKU, and one consumer for each list, so that nobody competes for the SKU's
// row. The consumer takes all orders that wait, up to 64, decides them against the row by one transaction, and
// answers: a message queue in front of the database, with the database as the judge.
//
// The cost: a buyer waits for two hops, an order lost with Redis is never answered, and a cart has no queue of its
// own. With several instances, each SKU needs exactly one consumer among them, or the queue saves nothing: that takes
// a lease.
func queuePerSKU() Design {
	return Design{
		Name:   "queue-per-sku",
		About:  "A list in Redis for each SKU; its one consumer decides against the database row, in batches.",
		Source: "as articles on message queues in flash sales describe it",
		Open: func(_ context.Context, on Servers) (Seller, error) {
			s := &queues{on: on, served: map[string]bool{}}
			return Seller{s.buy, s.close}, nil
		},
	}
}

type queues struct {
	on        Servers
	desk      desk
	mu        sync.Mutex
	served    map[string]bool // the SKUs that have a consumer
	consumers sync.WaitGroup
	closing   atomic.Bool
}

func (s *queues) buy(ctx context.Context, o Order) (bool, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return false, err
	}
	list := "designs:queue:" + o.SKUs[0]
	s.serve(ctx, o.SKUs[0], list)
	return s.desk.await(ctx, o, func() (bool, error) { return true, s.on.Redis.RPush(ctx, list, text).Err() })
}

// serve starts the consumer of a SKU, unless it has one.
func (s *queues) serve(ctx context.Context, sku, list string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.served[sku] {
		s.served[sku] = true
		s.consumers.Go(func() { s.consume(context.WithoutCancel(ctx), sku, list) })
	}
}

// consume decides the orders of a SKU until Close.
func (s *queues) consume(ctx context.Context, sku, list string) {
	for {
		// go-redis' BLMPop waits for a second at least, for which Close would wait.
		pop := redis.NewKeyValuesCmd(ctx, "BLMPOP", 0.1, 1, list, "LEFT", "COUNT", 64)
		pop.SetFirstKeyPos(3)
		_ = s.on.Redis.Process(ctx, pop)
		_, waiting, err := pop.Result()
		switch {
		case s.closing.Load():
			return // nobody waits any more
		case errors.Is(err, redis.Nil):
			continue
		case err != nil:
			time.Sleep(50 * time.Millisecond) // Redis does not answer
			continue
		}
		orders := make([]Order, len(waiting))
		for i, text := range waiting {
			err = errors.Join(err, json.Unmarshal([]byte(text), &orders[i]))
		}
		var sold int
		if err == nil {
			sold, err = s.decide(ctx, sku, orders)
		}
		s.desk.answer(verdict{sold: err == nil, err: err}, orders[:sold]...)
		s.desk.answer(verdict{err: err}, orders[sold:]...)
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
		if err := takeUnits(ctx, tx, sku, int64(sold)); err != nil {
			return err
		}
		_, err = insertOrders(ctx, tx, "INSERT", orders[:sold]...)
		return err
	})
	return sold, err
}

func (s *queues) close() error {
	s.closing.Store(true)
	s.consumers.Wait()
	return nil
}
