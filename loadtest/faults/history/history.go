// Package history records a shop that sold during a fault: the requests of its clients with the answers, and the rows
// that the shop has kept.
package history

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/shopclient"
)

// Kind is the kind of an operation.
type Kind string

// The kinds of operations.
const (
	Buy     Kind = "buy"
	Pay     Kind = "pay"
	Cancel  Kind = "cancel"
	Look    Kind = "look"
	Pry     Kind = "pry" // a look at another buyer's order
	Restock Kind = "restock"
	Fail    Kind = "fail"    // the payment provider reports a failed payment
	Release Kind = "release" // the same, and the order is cancelled
	Extend  Kind = "extend"  // an order holds its units for longer while a payment is under way
)

// Outcome is the outcome of an operation, by the answers that its client got.
type Outcome string

// The outcomes. All but Unknown are final.
const (
	Unknown   Outcome = "unknown" // no answer was final
	Placed    Outcome = "placed"
	SoldOut   Outcome = "sold-out"
	Paid      Outcome = "paid"
	Cancelled Outcome = "cancelled"
	Expired   Outcome = "expired" // the order was not paid in time
	Restocked Outcome = "restocked"
	Extended  Outcome = "extended"
	Pending   Outcome = "pending"         // of a look at an order
	NotThere  Outcome = "not-there"       // of a look at another buyer's order
	PaidTwice Outcome = "already-paid"    // the payment must be refunded: another payment has paid the order
	Mismatch  Outcome = "amount-mismatch" // the payment must be refunded: it is not the order's total
	Rejected  Outcome = "rejected"        // any other final answer, which no correct client should get
)

// Operation is an operation of a client, with its requests. All requests have the same idempotency key, if any, and each
// request is sent after the answer to the previous request.
type Operation struct {
	Kind     Kind              `json:"kind"`
	Buyer    string            `json:"buyer,omitempty"` // empty for the operator
	Key      string            `json:"key,omitempty"`
	Lines    []shopclient.Line `json:"lines,omitempty"`
	OrderID  string            `json:"order_id,omitempty"` // the acknowledged order, or the order to end or look at
	Expires  time.Time         `json:"expires,omitzero"`   // of that order, as it was acknowledged
	Outcome  Outcome           `json:"outcome"`
	Replay   bool              `json:"replay,omitempty"` // a buyer repeats an answered request, or a provider repeats a report
	Requests []Request         `json:"requests"`

	PaymentID string           `json:"payment_id,omitempty"` // of the provider
	Amount    shopclient.Money `json:"amount,omitzero"`      // of the payment, or of the order, as it was acknowledged
}

// Request is one try. Its times are since the start of the history, by the clock of this process.
type Request struct {
	Shop     int           `json:"shop"`
	Sent     time.Duration `json:"sent_ns"`
	Answered time.Duration `json:"answered_ns"`
	Answer   string        `json:"answer"` // status and problem, or the reason why there was no answer
}

// Sent returns the time from which the operation may have had an effect.
func (o Operation) Sent() time.Duration { return o.Requests[0].Sent }

// Last returns the last request, whose answer was final.
func (o Operation) Last() Request { return o.Requests[len(o.Requests)-1] }

// Units returns the number of units of the SKU in the order.
func (o Operation) Units(sku string) int64 {
	for _, line := range o.Lines {
		if line.SKU == sku {
			return line.Units
		}
	}
	return 0
}

// String describes an operation for a violation.
func (o Operation) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	last := o.Last()
	return fmt.Sprintf("%s of %s, key %s, by shop %d from %v to %v: %s",
		o.Kind, cmp.Or(o.Buyer, "the operator"), cmp.Or(o.Key, o.PaymentID), last.Shop+1, round(last.Sent), round(last.Answered), last.Answer)
}

// History is one run: the fault, its times, and the clients' operations. Many goroutines may call Add at once.
type History struct {
	Fault string `json:"fault"`
	Seed  uint64 `json:"seed"`
	system.Settings
	Name       string           `json:"name"` // begins the names of its SKUs and buyers
	SKUs       SKUs             `json:"skus"`
	Supplied   map[string]int64 `json:"supplied"`    // units of each SKU at the start
	Broken     time.Duration    `json:"broken_ns"`   // when the fault began; all times are since the start
	Replaced   time.Duration    `json:"replaced_ns"` // when another server had taken over; 0 if none has
	Healed     time.Duration    `json:"healed_ns"`   // when the fault had ended
	Recovery   time.Duration    `json:"recovery_ns"` // from Replaced or Healed until each shop had sold again, whichever is longer
	Ended      time.Duration    `json:"ended_ns"`    // when clients stopped beginning operations
	Gap        time.Duration    `json:"gap_ns"`      // the longest time without an acknowledged order, during and after the fault
	BeforeGap  time.Duration    `json:"-"`           // when the last order before it was acknowledged
	GapOf      string           `json:"-"`           // the SKU or the strategy without an order, with Each
	Each       string           `json:"each"`        // Gap is the longest one of each "SKU", or of each "shop" by lanes or batch
	MaxGap     time.Duration    `json:"max_gap_ns"`  // the longest Gap that the fault permits; 0: any
	Sold       int              `json:"orders"`      // acknowledged orders
	LockAlone  bool             `json:"lock_alone"`  // only the lock, or a shop that holds leases, is broken; not on SQLite
	Answered   bool             `json:"answered"`    // each request must get an answer, for which clients wait long enough
	Locked     string           `json:"locked"`      // prefix of the buyers whose requests need a row that another session locks
	MySQLConns int              `json:"mysql_conns"` // maximum of the connections to MySQL; 0: not counted
	Undecided  bool             `json:"undecided"`   // Porcupine's search took too long
	Findings   []string         `json:"-"`           // of the shop's own audit, at the end
	Refused    map[string]bool  `json:"-"`           // ids of payments that the operator must refund
	Violations []Violation      `json:"violations"`
	Operations []Operation      `json:"operations,omitempty"` // in the order of their first requests
	Books      `json:"-"`

	start time.Time
	mu    sync.Mutex
}

// Violation is a broken promise.
type Violation struct {
	Check  string `json:"check"`
	Detail string `json:"detail"`
}

// SKUs are the SKUs of one history, by purpose.
type SKUs struct {
	Deep string `json:"deep"` // never sold out: its sales show that the shop sells
	Hot  string `json:"hot"`  // few units, which come back and are restocked
	Cold string `json:"cold"` // sold in carts, together with Hot
	Few  string `json:"few"`  // few units, in orders of their own that end at once, for Porcupine
}

// All lists the SKUs.
func (s SKUs) All() []string { return []string{s.Deep, s.Hot, s.Cold, s.Few} }

// Begin starts the clock.
func (h *History) Begin() { h.start = time.Now() }

// Now returns the time since the start.
func (h *History) Now() time.Duration { return time.Since(h.start) }

// Add records an operation that has ended.
func (h *History) Add(o Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Operations = append(h.Operations, o)
}

// Sales returns the acknowledged orders in the order of their answers.
func (h *History) Sales() []Operation {
	h.mu.Lock()
	sales := slices.Clone(h.Operations)
	h.mu.Unlock()
	sales = slices.DeleteFunc(sales, func(o Operation) bool { return o.Outcome != Placed || o.Replay })
	slices.SortStableFunc(sales, func(a, b Operation) int { return cmp.Compare(a.Last().Answered, b.Last().Answered) })
	return sales
}

// SoldSince returns the time at which each shop had acknowledged an order of Deep that was sent after the given time, or 0.
func (h *History) SoldSince(after time.Duration) time.Duration {
	sold := map[int]bool{} // by shop
	for _, o := range h.Sales() {
		if last := o.Last(); o.Units(h.SKUs.Deep) > 0 && last.Sent >= after {
			if sold[last.Shop] = true; len(sold) == system.Instances {
				return last.Answered
			}
		}
	}
	return 0
}

// End sorts the operations and sums up the sales, once all clients have ended.
func (h *History) End() {
	slices.SortStableFunc(h.Operations, func(a, b Operation) int { return cmp.Compare(a.Sent(), b.Sent()) })
	sales := h.Sales()
	h.Sold = len(sales)
	last := map[string]time.Duration{} // acknowledged order of each group
	next := func(group string, at time.Duration) {
		if at > h.Broken && at-last[group] > h.Gap {
			h.Gap, h.BeforeGap, h.GapOf = at-last[group], last[group], group
		}
		last[group] = at
	}
	for _, o := range sales {
		for _, group := range h.groups(o) {
			next(group, o.Last().Answered)
		}
	}
	for group := range last {
		next(group, h.Ended)
	}
	h.Recovery = cmp.Or(h.SoldSince(h.Healed), h.Ended) - h.Healed
	if h.Replaced > 0 {
		h.Recovery = max(h.Recovery, cmp.Or(h.SoldSince(h.Replaced), h.Ended)-h.Replaced)
	}
}

// groups returns the SKUs or the shop of an order, depending on Each. A shop by redis waits for the leases of the others.
func (h *History) groups(o Operation) (names []string) {
	switch shop := o.Last().Shop; {
	case h.Each == "SKU":
		return slices.DeleteFunc(h.SKUs.All(), func(sku string) bool { return o.Units(sku) == 0 })
	case h.Each == "shop" && h.Strategies[shop] == "redis":
		return nil
	case h.Each == "shop":
		return []string{h.Strategies[shop]}
	}
	return []string{""}
}

// Books are the shop's rows of a history's SKUs and buyers, read in one transaction.
type Books struct {
	Orders    map[string]Order   // by id
	Movements []Movement         // in the order of their ids
	Levels    map[string]Level   // by SKU
	Payments  map[string]Payment // of the orders, by the provider's id
}

// Order is an order and its lines.
type Order struct {
	Buyer, Key, Status string
	Units              map[string]int64 // by SKU
	Total              shopclient.Money
}

// Payment is a payment of an order. With an empty Refusal, it pays the order.
type Payment struct {
	OrderID, Refusal string
	Amount           shopclient.Money
}

// Movement is a row of the stock ledger, with the numbers that it adds to the counts of its SKU.
type Movement struct {
	ID, SKU, Kind, OrderID string
	Level
	Fence int64
}

// Level has the numbers of units of a SKU.
type Level struct{ Supplied, Available, Reserved, Sold int64 }

// Plus returns the sum of two levels.
func (l Level) Plus(m Level) Level {
	return Level{l.Supplied + m.Supplied, l.Available + m.Available, l.Reserved + m.Reserved, l.Sold + m.Sold}
}

// Read reads the books. A database that has just recovered has half a minute.
func (h *History) Read(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("read the books: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	h.Books = Books{Orders: map[string]Order{}, Levels: map[string]Level{}, Payments: map[string]Payment{}}
	var id, sku string
	var units int64
	var l Level
	var m Movement
	var o Order
	var p Payment
	for _, rows := range []struct {
		query string
		into  []any
		keep  func() // keeps the row in the variables
	}{{
		"SELECT name, supplied, available, reserved, sold FROM skus WHERE name LIKE ?",
		[]any{&sku, &l.Supplied, &l.Available, &l.Reserved, &l.Sold},
		func() { h.Levels[sku] = l },
	}, {
		"SELECT id, sku, kind, COALESCE(order_id, ''), supplied, available, reserved, sold, fence FROM movements WHERE sku LIKE ? ORDER BY id",
		[]any{&m.ID, &m.SKU, &m.Kind, &m.OrderID, &m.Supplied, &m.Available, &m.Reserved, &m.Sold, &m.Fence},
		func() { h.Movements = append(h.Movements, m) },
	}, {
		`SELECT o.id, o.buyer, o.idempotency_key, o.status, o.total_minor, o.currency, l.sku, l.units
			FROM orders AS o JOIN order_lines AS l ON l.order_id = o.id WHERE o.buyer LIKE ?`,
		[]any{&id, &o.Buyer, &o.Key, &o.Status, &o.Total.Minor, &o.Total.Currency, &sku, &units},
		func() {
			if o.Units = h.Orders[id].Units; o.Units == nil {
				o.Units = map[string]int64{}
			}
			o.Units[sku] += units
			h.Orders[id] = o
		},
	}, {
		`SELECT p.id, p.order_id, p.refusal, p.amount_minor, p.currency
			FROM payments AS p JOIN orders AS o ON o.id = p.order_id WHERE o.buyer LIKE ?`,
		[]any{&id, &p.OrderID, &p.Refusal, &p.Amount.Minor, &p.Amount.Currency},
		func() { h.Payments[id] = p },
	}} {
		if err := h.each(ctx, tx, rows.query, rows.into, rows.keep); err != nil {
			return fmt.Errorf("read the books: %w", err)
		}
	}
	return nil
}

// each calls keep for each row of a query about the SKUs or the buyers of the history.
func (h *History) each(ctx context.Context, tx *sql.Tx, query string, into []any, keep func()) error {
	r, err := tx.QueryContext(ctx, query, h.Name+"-%")
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	for r.Next() {
		if err := r.Scan(into...); err != nil {
			return err
		}
		keep()
	}
	return r.Err()
}
