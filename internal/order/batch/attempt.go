package batch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// batch is one attempt of a transaction.
type batch struct {
	requests       []*request             // not refused so far; in the end, the placed or ended requests
	claimed        []order.BuyerKey       // keys that this attempt has written
	recorded       []string               // ids of payments that this attempt has written
	early          map[string]order.Order // by id, the orders that are written before the stock is read
	levels         order.Levels           // of the locked rows; from decide on, as the batch will leave them
	ahead          time.Duration          // by which the database's clock is ahead of this process's
	fences         map[string]int64       // of the leases, by SKU; none for a SKU without a lease
	lockedByOthers []string               // SKUs whose row another transaction has locked
}

// inTx runs do in a transaction, and again after a deadlock. It returns the last attempt. Without an error, this attempt is
// committed or has changed nothing.
func (s *Seller) inTx(ctx context.Context, requests []*request, do func(order.Tx, *batch) error) (b *batch, err error) {
	err = s.Store.InTx(ctx, func(tx order.Tx) error {
		for _, r := range requests {
			r.reset()
		}
		b = &batch{requests: slices.Clone(requests)}
		return do(tx, b)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if b != nil && len(requests) == 1 && errors.Is(err, order.ErrLocked) {
		// If this attempt has locked the rows of its SKUs, it has waited in vain for a later gap, such as the end of the
		// ledger.
		for sku := range b.levels.SKUs {
			s.lockedByOthers[sku]++
		}
	}
	if err != nil && !errors.Is(err, order.ErrNothing) {
		return nil, err
	}
	if len(s.known) > maxKnown {
		clear(s.known)
	}
	maps.Copy(s.known, b.levels.SKUs)
	if len(b.levels.SKUs) > 0 {
		s.ahead = b.ahead
	}
	for sku := range b.levels.SKUs {
		delete(s.lockedByOthers, sku)
	}
	for _, sku := range b.lockedByOthers {
		s.lockedByOthers[sku]++
	}
	return b, nil
}

// context returns the ctx of a batch. It has the values of the first buyer's ctx, but does not end with it.
func (s *Seller) context(buyers []*request) (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(buyers[0].ctx)
	if s.Share != nil {
		ctx = s.Share(ctx, order.Map(buyers, func(r *request) context.Context { return r.ctx }))
	}
	return context.WithTimeout(ctx, batchTimeout)
}

// lockBuyers locks the rows of the buyers of requests with a key. So only one transaction at a time places orders of a
// buyer: it can count the buyer's pending orders, and its INSERT of a key waits for no other transaction. If another
// transaction has locked the row, the request waits in the queue behind.
func (s *Seller) lockBuyers(tx order.Tx, b *batch) error {
	others, err := tx.LockBuyers(order.Map(b.where(hasKey).requests, func(r *request) string { return r.key.Buyer })...)
	s.putBehind(b, func(r *request) bool { return hasKey(r) && slices.Contains(others, r.key.Buyer) })
	return err
}

// lockBought locks and counts what the buyers of these requests have bought of SKUs with a limit. If another transaction has
// locked a count, the request waits in the queue behind.
func (s *Seller) lockBought(tx order.Tx, b *batch, limits *order.Limits, of func(*request) bool) error {
	others, err := limits.LockBought(tx, b.levels, b.where(of).orders()...)
	s.putBehind(b, func(r *request) bool {
		return slices.ContainsFunc(others, func(o order.BuyerSKU) bool {
			return o.Buyer == r.order.Buyer && slices.Contains(r.order.SKUs(), o.SKU)
		})
	})
	return err
}

// putBehind leaves out the requests for which needs returns true. They wait in the queue behind.
func (s *Seller) putBehind(b *batch, needs func(*request) bool) {
	b.keep(func(r *request) bool {
		if needs(r) {
			r.next = &s.behind
		}
		return r.next == nil
	})
}

// lockRows locks and reads the rows of the SKUs of those requests for which moves returns true. If another transaction
// keeps a row locked, the request waits in the queue behind, where one request at a time tries the row.
func (s *Seller) lockRows(tx order.Tx, b *batch, moves func(*request) bool) (err error) {
	s.mu.Lock()
	s.putBehind(b, func(r *request) bool { return moves(r) && !r.alone && len(s.lockedSKUs(r)) > 0 })
	s.mu.Unlock()
	wanted := b.where(moves).skus()
	b.levels, err = tx.TryLevels(wanted, s.Patience)
	if err != nil {
		return err
	}
	b.ahead = time.Until(b.levels.At)
	b.lockedByOthers = slices.DeleteFunc(wanted, func(sku string) bool { _, ours := b.levels.SKUs[sku]; return ours })
	s.putBehind(b, func(r *request) bool {
		return moves(r) && slices.ContainsFunc(r.order.SKUs(), func(sku string) bool { return slices.Contains(b.lockedByOthers, sku) })
	})
	return nil
}

func all(*request) bool      { return true }
func hasKey(r *request) bool { return r.key.Key != "" }

// claimKeys claims the keys of the requests, and leaves out requests whose key is already on record.
func (b *batch) claimKeys(tx order.Tx) error {
	claims := order.Map(b.where(hasKey).requests, func(r *request) order.UsedKey {
		return order.UsedKey{Order: order.Order{ID: r.order.ID, Buyer: r.key.Buyer, Key: r.key.Key}, Fingerprint: r.fingerprint}
	})
	taken, err := tx.ClaimKeys(claims...)
	b.keep(func(r *request) bool {
		if used, known := taken[r.key]; known {
			r.used = &used
		} else if hasKey(r) {
			b.claimed = append(b.claimed, r.key)
		}
		return r.used == nil
	})
	return err
}

// undo deletes the keys and the payments of requests that were left out since.
func (b *batch) undo(tx order.Tx) error {
	keys, payments := b.claimed, b.recorded
	for _, r := range b.requests {
		keys = slices.DeleteFunc(keys, func(k order.BuyerKey) bool { return k == r.key })
		payments = slices.DeleteFunc(payments, func(id string) bool { return id == r.payment().ID })
	}
	if err := tx.FreeKeys(keys...); err != nil {
		return err
	}
	return tx.ForgetPayments(payments...)
}

// move moves the units of the request's order in the levels of the batch.
func (b *batch) move(r *request) {
	for _, kind := range r.kinds() {
		for _, line := range r.order.Lines {
			sku, change := b.levels.SKUs[line.SKU], kind.Change(line.Units)
			sku.Available += change.Available
			sku.Reserved += change.Reserved
			b.levels.SKUs[line.SKU] = sku
		}
	}
}

// keep leaves out the requests for which is returns false.
func (b *batch) keep(is func(*request) bool) {
	b.requests = slices.DeleteFunc(b.requests, func(r *request) bool { return !is(r) })
}

// where returns the part of the batch for which is returns true.
func (b *batch) where(is func(*request) bool) *batch {
	part := &batch{requests: slices.Clone(b.requests)}
	part.keep(is)
	return part
}

func (b *batch) orders() []order.Order {
	return order.Map(b.requests, func(r *request) order.Order { return *r.order })
}

func (b *batch) lines() []order.Line {
	return slices.Concat(order.Map(b.requests, func(r *request) []order.Line { return r.order.Lines })...)
}

// skus returns the names of the SKUs, sorted.
func (b *batch) skus() []string {
	names := order.Order{Lines: b.lines()}.SKUs()
	slices.Sort(names)
	return slices.Compact(names)
}

func (b *batch) movements(at time.Time) (all []stock.Movement) {
	for _, r := range b.requests {
		for _, kind := range r.kinds() {
			all = append(all, r.order.Movements(kind, b.fences, at)...)
		}
	}
	return all
}
