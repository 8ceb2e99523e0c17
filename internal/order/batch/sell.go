package batch

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
	"example.com/shop/internal/stock"
)

// Sell implements order.Strategy.
func (s *Seller) Sell(ctx context.Context, d *order.Draft) error {
	if err := order.Pause(ctx, d.Think); err != nil {
		return err
	}
	r := newRequest(ctx, *d, d.Key)
	s.queueOf(r).join(r)
	a := s.await(r)
	if a.err == nil {
		*d = a.draft
	}
	return a.err
}

// queueOf returns the queue in which an order waits to be placed.
func (s *Seller) queueOf(r *request) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.selling
	for _, line := range r.draft.Lines {
		switch sku, known := s.known[line.SKU]; {
		case known && sku.Available == 0:
			return &s.soldOut
		case s.lockedByOthers[line.SKU] > 0:
			q = &s.behind
		}
	}
	return q
}

func (s *Seller) sell(requests []*request) { s.sellUnder(s.Locker, requests) }

// sellUnder decides the orders of the requests, and places those that can be placed, in one transaction, under leases
// of the locker, if there is one.
func (s *Seller) sellUnder(locker strategy.Locker, requests []*request) {
	ctx, cancel := s.context(requests)
	defer cancel()
	leases := &leases{seller: s, locker: locker, ctx: ctx}
	defer leases.release() // after the answers
	s.serve(requests, func() (*batch, error) {
		place := func(tx order.Tx, b *batch) error { return s.place(tx, b, leases) } //nolint:contextcheck // leases have it
		b, err := s.inTx(ctx, requests, place)
		if err == nil && len(b.requests) > 0 && s.OnBatch != nil {
			s.OnBatch(len(b.requests))
		}
		return b, err
	})
}

// batch is one attempt of a transaction. Each step decides some of the requests. The orders of the requests without a
// decision are placed, or end.
type batch struct {
	requests  []*request                  // without a decision
	decisions map[*request]decision       // about the requests that have left the batch
	outcomes  map[*request]*order.Outcome // of the requests to end an order, as decideEnd has set them

	claimed        []*request    // whose keys this attempt has written
	levels         order.Levels  // of the locked rows; each decided order changes them
	lockedByOthers []string      // SKUs whose row another transaction has locked
	ahead          time.Duration // by which the database's clock is ahead of this process's
}

// newBatch returns an attempt in which nothing is decided.
func newBatch(requests []*request) *batch {
	return &batch{requests: slices.Clone(requests), decisions: map[*request]decision{}, outcomes: map[*request]*order.Outcome{}}
}

// decision is what a step decides about a request. At most one field is set; the zero value leaves the request in the
// batch.
type decision struct {
	refused   error          // why the order is not placed or does not end
	replayed  *order.UsedKey // an earlier request has used the key
	unchanged bool           // the order does not end: its status is the answer
	waits     *queue         // where the request waits, as for a row that another transaction has locked
}

// decide asks a step about each request of the batch. Requests with a decision leave the batch.
func (b *batch) decide(step func(*request) decision) {
	b.requests = slices.DeleteFunc(b.requests, func(r *request) bool {
		d := step(r)
		if d == (decision{}) {
			return false
		}
		b.decisions[r] = d
		return true
	})
}

// place is one attempt of the transaction that places orders. The instances queue for the leases, so place first writes
// the orders, whose rows no other transaction waits for. It predicts the orders by the last known terms of the SKUs,
// and mends them later if the terms have changed.
func (s *Seller) place(tx order.Tx, b *batch, leases *leases) error {
	// Lock the buyers, count their pending orders, and claim the keys.
	err := s.lockBuyers(tx, b)
	if err != nil {
		return err
	}
	limits := order.Limits{MaxOpen: s.MaxOpen}
	if buyers := b.buyers(); s.MaxOpen > 0 && len(buyers) > 0 {
		if limits.Open, err = tx.Open(buyers...); err != nil {
			return err
		}
	}
	if err := b.claimKeys(tx); err != nil {
		return err
	}

	// Write the orders, as the remembered levels predict them.
	remembered := s.remembered(b.skus())
	predicted := b.predict(remembered, limits)
	if err := tx.Insert(predicted...); err != nil {
		return err
	}

	// Take the leases, lock the rows, and decide by them.
	leases.acquire(b.byDemand())
	if err := s.lockRows(tx, b); err != nil {
		return err
	}
	// If the predicted time is less than a second off, it stays: otherwise every order would have to be mended.
	if b.levels.At.Sub(remembered.At).Abs() < time.Second {
		b.levels.At = remembered.At
	}
	if limits.Bought, err = s.lockBought(tx, b); err != nil {
		return err
	}
	b.decide(func(r *request) decision { return b.decideOrder(r, limits) })

	// The orders that are left are placed, under the fences of the leases. If a row has the same or a higher fence,
	// another holder has the lease, or the lock's store has lost its data: this SKU is sold without a fence.
	if len(b.requests) == 0 {
		return order.ErrNothing // rolls back: the decisions are the answers
	}
	fences := map[string]int64{}
	if leases.held != nil {
		for _, sku := range b.levels.SKUs {
			if fence := leases.held.Fence(strategy.Key(sku.Name)); fence > sku.Fence {
				fences[sku.Name] = fence
			}
		}
	}
	if err := b.freeKeys(tx); err != nil {
		return err
	}
	wrong, missing := b.mend(predicted)
	if err := tx.Delete(wrong...); err != nil {
		return err
	}
	if err := tx.Insert(missing...); err != nil {
		return err
	}
	// The rows are locked, the units are available, and the fences are higher: Move changes all rows.
	if err := tx.Move(b.movements(fences, b.levels.At)...); err != nil {
		return err
	}
	var free []order.Payment
	for _, r := range b.requests {
		if r.draft.Status == order.Paid {
			free = append(free, r.draft.OwnPayment())
		}
	}
	if _, _, err := tx.RecordPayments(free...); err != nil {
		return err
	}
	return tx.AddBought(b.levels.Limited(1, b.counted()...))
}

// lockBuyers locks the rows of the buyers of requests with a key. So only one transaction at a time places orders of a
// buyer: it can count the buyer's pending orders, and its INSERT of a key waits for no other transaction. If another
// transaction has locked the row, the request waits in the queue behind.
func (s *Seller) lockBuyers(tx order.Tx, b *batch) error {
	others, err := tx.LockBuyers(b.buyers()...)
	if err != nil {
		return err
	}
	s.putBehind(b, func(r *request) bool { return r.key.Key != "" && slices.Contains(others, r.key.Buyer) })
	return nil
}

// putBehind moves the requests that need a locked row to the queue behind.
func (s *Seller) putBehind(b *batch, needs func(*request) bool) {
	b.decide(func(r *request) decision {
		if needs(r) {
			return decision{waits: &s.behind}
		}
		return decision{}
	})
}

// buyers returns the buyers of requests with a key.
func (b *batch) buyers() (buyers []string) {
	for _, r := range b.requests {
		if r.key.Key != "" {
			buyers = append(buyers, r.key.Buyer)
		}
	}
	return buyers
}

// claimKeys claims the keys of the requests. A request whose key is already on record is replayed.
func (b *batch) claimKeys(tx order.Tx) error {
	var claims []order.UsedKey
	for _, r := range b.requests {
		if r.key.Key != "" {
			keyed := order.Order{ID: r.draft.ID, Buyer: r.key.Buyer, Key: r.key.Key}
			claims = append(claims, order.UsedKey{Order: keyed, Fingerprint: r.draft.Fingerprint})
		}
	}
	taken, err := tx.ClaimKeys(claims...)
	if err != nil {
		return err
	}
	b.decide(func(r *request) decision {
		if used, known := taken[r.key]; known {
			return decision{replayed: &used}
		}
		if r.key.Key != "" {
			b.claimed = append(b.claimed, r)
		}
		return decision{}
	})
	return nil
}

// skus returns the SKUs whose units the batch moves, sorted.
func (b *batch) skus() (names []string) {
	for _, r := range b.requests {
		if b.moves(r) {
			for _, line := range r.draft.Lines {
				names = append(names, line.SKU)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (b *batch) moves(r *request) bool { return len(b.kinds(r)) > 0 }

// kinds returns the kinds of the movements that a request makes. A free order is sold at once. The request to end an
// order makes none unless decideEnd has decided that the order ends.
func (b *batch) kinds(r *request) []stock.Kind {
	switch ending := r.ending; {
	case ending == nil && r.draft.Status == order.Paid:
		return []stock.Kind{stock.Reserve, stock.Sell}
	case ending == nil:
		return []stock.Kind{stock.Reserve}
	case !b.outcomes[r].First:
		return nil
	case ending.As == order.Paid:
		return []stock.Kind{stock.Sell}
	default:
		return []stock.Kind{stock.Release}
	}
}

// remembered returns the last known levels of the SKUs, and an estimate of the database's time.
func (s *Seller) remembered(skus []string) order.Levels {
	s.mu.Lock()
	defer s.mu.Unlock()
	levels := order.Levels{SKUs: map[string]stock.SKU{}, At: time.Now().Add(s.ahead).UTC().Truncate(time.Microsecond)}
	for _, name := range skus {
		if sku, known := s.known[name]; known {
			levels.SKUs[name] = sku
		}
	}
	return levels
}

// predict returns the orders as these levels would place them. The levels may be outdated, and may lack SKUs.
func (b *batch) predict(levels order.Levels, limits order.Limits) (orders []order.Order) {
	for _, r := range b.requests {
		if r.draft.Price(levels) == nil && limits.TooManyOpen(r.draft.Order) == nil {
			orders = append(orders, r.draft.Order)
		}
	}
	return orders
}

// byDemand returns the SKUs, those first that most orders want.
func (b *batch) byDemand() []string {
	orders := map[string]int{}
	for _, r := range b.requests {
		for _, line := range r.draft.Lines {
			orders[line.SKU]++
		}
	}
	return slices.SortedFunc(maps.Keys(orders), func(x, y string) int {
		return cmp.Or(cmp.Compare(orders[y], orders[x]), cmp.Compare(x, y))
	})
}

// lockRows locks and reads the rows of the SKUs whose units the batch moves. If another transaction keeps a row locked,
// the request waits in the queue behind, where one request at a time tries the row.
func (s *Seller) lockRows(tx order.Tx, b *batch) (err error) {
	s.mu.Lock()
	s.putBehind(b, func(r *request) bool { return b.moves(r) && !r.alone && len(s.lockedSKUs(r)) > 0 })
	s.mu.Unlock()
	wanted := b.skus()
	b.levels, err = tx.TryLevels(wanted, s.Patience)
	if err != nil {
		return err
	}
	b.ahead = time.Until(b.levels.At)
	b.lockedByOthers = slices.DeleteFunc(wanted, func(sku string) bool { _, ours := b.levels.SKUs[sku]; return ours })
	isLocked := func(sku string) bool { return slices.Contains(b.lockedByOthers, sku) }
	s.putBehind(b, func(r *request) bool { return b.moves(r) && slices.ContainsFunc(r.draft.SKUs(), isLocked) })
	return nil
}

// lockBought locks and counts what the buyers have bought of SKUs with a limit. The sale of a reserved order leaves
// these counts as they are. If another transaction has locked a count, the request waits in the queue behind.
func (s *Seller) lockBought(tx order.Tx, b *batch) (bought map[order.BuyerSKU]int64, err error) {
	limited := b.levels.Limited(1, b.counted()...)
	bought, others, err := tx.LockBought(slices.Collect(maps.Keys(limited))...)
	if err != nil {
		return nil, err
	}
	s.putBehind(b, func(r *request) bool {
		return b.counts(r) && slices.ContainsFunc(others, func(o order.BuyerSKU) bool {
			return o.Buyer == r.draft.Buyer && slices.Contains(r.draft.SKUs(), o.SKU)
		})
	})
	return bought, nil
}

// counts reports whether the request changes the number of units that count against its buyer's limits: it places an
// order, or releases the units of one.
func (b *batch) counts(r *request) bool { return b.moves(r) && b.kinds(r)[0] != stock.Sell }

// counted returns the orders of the requests that count.
func (b *batch) counted() (orders []order.Order) {
	for _, r := range b.requests {
		if b.counts(r) {
			orders = append(orders, r.draft.Order)
		}
	}
	return orders
}

// decideOrder prices the order by the locked rows. If the order can be placed, it takes its units before the orders
// behind it are decided.
func (b *batch) decideOrder(r *request, limits order.Limits) decision {
	if r.ctx.Err() != nil {
		return decision{refused: r.abandoned()} // the client may have been refused by another instance meanwhile
	}
	if err := b.levels.Cover(&r.draft); err != nil {
		return decision{refused: err}
	}
	if err := r.draft.Price(b.levels); err != nil {
		return decision{refused: err}
	}
	if err := limits.Over(r.draft.Order, b.levels); err != nil {
		return decision{refused: err}
	}
	b.apply(r)
	return decision{}
}

// apply changes the levels of the batch by the movements of the request.
func (b *batch) apply(r *request) {
	for _, kind := range b.kinds(r) {
		for _, line := range r.draft.Lines {
			sku, change := b.levels.SKUs[line.SKU], kind.Change(line.Units)
			sku.Available += change.Available
			sku.Reserved += change.Reserved
			b.levels.SKUs[line.SKU] = sku
		}
	}
}

// freeKeys deletes the keys of requests that were decided since they were claimed.
func (b *batch) freeKeys(tx order.Tx) error {
	var keys []order.BuyerKey
	for _, r := range b.claimed {
		if _, decided := b.decisions[r]; decided {
			keys = append(keys, r.key)
		}
	}
	return tx.FreeKeys(keys...)
}

// mend compares the predicted orders, which are written, with the decided ones. It returns the ids of the orders to
// delete, and the orders to write.
func (b *batch) mend(predicted []order.Order) (wrong []string, missing []order.Order) {
	written := map[string]order.Order{}
	for _, o := range predicted {
		written[o.ID] = o
	}
	for _, r := range b.requests {
		o, p := r.draft.Order, written[r.draft.ID]
		if p.CreatedAt.Equal(o.CreatedAt) && slices.Equal(p.Lines, o.Lines) {
			delete(written, o.ID)
		} else {
			missing = append(missing, o)
		}
	}
	return slices.Sorted(maps.Keys(written)), missing
}

// movements returns the ledger's rows of the remaining requests.
func (b *batch) movements(fences map[string]int64, at time.Time) (all []stock.Movement) {
	for _, r := range b.requests {
		for _, kind := range b.kinds(r) {
			all = append(all, r.draft.Movements(kind, fences, at)...)
		}
	}
	return all
}

// refuseSoldOut answers the buyers of SKUs that were sold out. If units are available again, and the key is not on
// record, the request moves to the queue selling.
//
// It reads the stock before the keys: if an earlier request of a buyer took the last units, its key is on record.
func (s *Seller) refuseSoldOut(requests []*request) {
	s.serve(requests, func() (*batch, error) { return s.decideSoldOut(requests) })
}

// decideSoldOut decides by the stock, and by the keys on record.
func (s *Seller) decideSoldOut(requests []*request) (*batch, error) {
	ctx, cancel := s.context(requests)
	defer cancel()
	b := newBatch(requests)
	var lines []order.Line
	var keys []order.BuyerKey
	for _, r := range requests {
		lines, keys = append(lines, r.draft.Lines...), append(keys, r.key)
	}
	levels, err := s.Store.Levels(ctx, lines...)
	if err != nil {
		return b, err
	}
	used, err := s.Store.UsedKeys(ctx, keys...)
	if err != nil {
		return b, err
	}
	b.decide(func(r *request) decision {
		if use, known := used[r.key]; known {
			return decision{replayed: &use}
		}
		if err := levels.Cover(&r.draft); err != nil {
			return decision{refused: err}
		}
		return decision{waits: &s.selling}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.known, levels.SKUs)
	return b, nil
}
