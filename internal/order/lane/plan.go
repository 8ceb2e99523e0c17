package lane

import (
	"context"
	"slices"
	"time"

	"example.com/shop/internal/order"
)

// batch is what one transaction sells of one SKU.
type batch struct {
	sku    string
	buyers []*buyer // taken from the queue, in the order of arrival; grows under Lanes.mu
	behind []*buyer // taken back: the next batch decides, when the orders before theirs are placed or have failed

	// The plan.
	levels  order.Levels
	units   int64                  // of all orders
	orders  []*buyer               // those that are sold, each with another key
	twins   [][]*buyer             // by index of orders: further requests with the same key
	byKey   map[order.BuyerKey]int // index of orders
	refused map[*buyer]error
}

// hasRoom reports whether the batch can take another buyer.
func (b *batch) hasRoom(*buyer) bool { return len(b.buyers) < batchLimit }

// begin starts an empty plan by these levels.
func (b *batch) begin(levels order.Levels) {
	b.levels, b.units, b.orders, b.twins = levels, 0, nil, nil
	b.byKey, b.refused = map[order.BuyerKey]int{}, map[*buyer]error{}
}

// plan plans the orders of all buyers. One that wants more than is left is refused; a smaller order behind it may still
// fit.
func (b *batch) plan(levels order.Levels) {
	b.begin(levels)
	for _, w := range b.buyers {
		if err := b.add(w); err != nil {
			b.refused[w] = err
		}
	}
}

// add adds a buyer's order to the plan, or returns why it is refused.
func (b *batch) add(w *buyer) error {
	if i, twin := b.byKey[w.key()]; twin {
		b.twins[i] = append(b.twins[i], w)
		return nil
	}
	if b.units+w.units() > b.levels.SKUs[0].Level.Available {
		return order.SoldOut(b.sku)
	}
	if err := w.draft.Price(b.levels); err != nil {
		return err
	}
	b.byKey[w.key()] = len(b.orders)
	b.orders = append(b.orders, w)
	b.twins = append(b.twins, nil)
	b.units += w.units()
	return nil
}

// ordersFrom returns the planned orders from an index on.
func (b *batch) ordersFrom(first int) []order.Order {
	orders := make([]order.Order, 0, len(b.orders)-first)
	for _, w := range b.orders[first:] {
		orders = append(orders, w.draft.Order)
	}
	return orders
}

func draftsOf(buyers []*buyer) []*order.Draft {
	drafts := make([]*order.Draft, len(buyers))
	for i, w := range buyers {
		drafts[i] = w.draft
	}
	return drafts
}

// think pauses for the longest think time of its orders.
func (b *batch) think(ctx context.Context) error {
	var longest time.Duration
	for _, w := range b.orders {
		longest = max(longest, w.draft.Think)
	}
	return order.Pause(ctx, longest)
}

// replyPlanned answers all buyers of a plan after its commit: those of orders, their twins, and the refused ones.
func (b *batch) replyPlanned() {
	for i, w := range b.orders {
		claim := order.Claim{Order: w.draft.Order, Fingerprint: w.draft.Fingerprint}
		w.reply(answer{})
		for _, twin := range b.twins[i] {
			twin.reply(answer{err: twin.draft.Replay(claim)})
		}
	}
	for w, err := range b.refused {
		w.reply(answer{err: err})
	}
}

// replyRest answers the buyers without an answer.
func (b *batch) replyRest(a answer) {
	for _, w := range b.buyers {
		if !w.answered {
			w.reply(a)
		}
	}
}

func (b *batch) dropAnswered() {
	b.buyers = slices.DeleteFunc(b.buyers, func(w *buyer) bool { return w.answered || slices.Contains(b.behind, w) })
}
