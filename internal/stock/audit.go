package stock

import "fmt"

// Invariant is the name of a condition that always holds in a shop.
type Invariant string

// The invariants.
const (
	I1 Invariant = "I1"
	I2 Invariant = "I2"
	I3 Invariant = "I3"
	I4 Invariant = "I4"
	I5 Invariant = "I5"
	I6 Invariant = "I6"
	I7 Invariant = "I7"
	I8 Invariant = "I8"
)

// Promise is an invariant in words, for help texts and documents.
type Promise struct {
	Invariant
	Text    string
	Audited bool // the fault runs check the others, which need the buyers' own records
}

// Promises is the table of the invariants.
func Promises() []Promise {
	return []Promise{
		{I1, "No unit is sold twice: supplied = available + reserved + sold, none negative, and orders hold no more than was supplied.", true},
		{I2, "One idempotency key, one order: each order's key is on record for it, and no key is without its order.", true},
		{I3, "Each order that a buyer was told of exists.", false},
		{I4, "Fences strictly increase: a SKU has the highest fence of its movements, and all reservations under one " +
			"fence are of one transaction.", true},
		{I5, "The ledger explains the rest: movements add up to the level, each order and delivery has exactly its own, " +
			"an order's money adds up, " +
			"and a limit counts what the buyer's pending and paid orders have.", true},
		{I6, "Sales go on within 5 s of the end of a fault.", false},
		{I7, "A request whose outcome was unknown has exactly one.", false},
		{I8, "Each paid order was paid by one payment, of its total; every other payment is on record as refused.", true},
	}
}

// Account has the units of a SKU by three sources that must agree: level, ledger and orders. Its JSON
// is what the API shows of an audit.
type Account struct {
	SKU string `json:"sku"`
	Level
	Orders       int64 `json:"orders"`        // number of accepted orders, whatever their status
	OrderedUnits int64 `json:"ordered_units"` // units that pending and paid orders hold
	OpenUnits    int64 `json:"-"`             // of those, units of pending orders
	PaidUnits    int64 `json:"-"`             // of those, units of paid orders
	Ledger       Level `json:"-"`             // sum of all movements
	Fence        int64 `json:"-"`             // the highest fence under which the level was written
	LedgerFence  int64 `json:"-"`             // the highest fence of all movements
}

// Oversold returns the number of units in orders minus the units supplied, if positive. It counts the orders, because a
// lost update oversells while the level reads zero.
func (a Account) Oversold() int64 {
	return max(0, a.OrderedUnits-a.Supplied)
}

// Difference is one broken invariant.
type Difference struct {
	Invariant Invariant `json:"invariant"`
	SKU       string    `json:"sku,omitempty"`      // empty if the difference concerns no single SKU
	OrderID   string    `json:"order_id,omitempty"` // empty if the difference concerns no single order
	Detail    string    `json:"detail"`
}

// Check compares the three sources and returns the differences.
func (a Account) Check() []Difference {
	var found []Difference
	differ := func(invariant Invariant, format string, args ...any) {
		found = append(found, Difference{Invariant: invariant, SKU: a.SKU, Detail: fmt.Sprintf(format, args...)})
	}
	if l := a.Level; l.Supplied != l.Available+l.Reserved+l.Sold || min(l.Supplied, l.Available, l.Reserved, l.Sold) < 0 {
		differ(I1, "supplied %d is not available %d + reserved %d + sold %d, none negative",
			l.Supplied, l.Available, l.Reserved, l.Sold)
	}
	if over := a.Oversold(); over > 0 {
		differ(I1, "oversold by %d: orders hold %d units of %d supplied", over, a.OrderedUnits, a.Supplied)
	}
	if a.Reserved != a.OpenUnits {
		differ(I1, "reserved %d, but open orders hold %d units", a.Reserved, a.OpenUnits)
	}
	if a.Sold != a.PaidUnits {
		differ(I1, "sold %d, but paid orders have %d units", a.Sold, a.PaidUnits)
	}
	if a.Fence != a.LedgerFence {
		differ(I4, "level was written under fence %d; the highest fence of its movements is %d", a.Fence, a.LedgerFence)
	}
	if a.Level != a.Ledger {
		text := func(l Level) string {
			return fmt.Sprintf("supplied %d, available %d, reserved %d, sold %d", l.Supplied, l.Available, l.Reserved, l.Sold)
		}
		differ(I5, "level says %s; the ledger adds up to %s", text(a.Level), text(a.Ledger))
	}
	return found
}

// Report is the JSON of an audit, both in the API and for `shop audit --json`. NewReport returns an empty one; the functions
// of a store's Audit add to it.
type Report struct {
	OK          bool              `json:"ok"`
	SKUs        []ReportedAccount `json:"skus"`
	Differences []Difference      `json:"differences"`
	Truncated   bool              `json:"truncated"` // there are more SKUs or differences than are listed

	Compared, Found int `json:"-"` // the numbers of SKUs and differences, listed or not
}

// ReportedAccount is the JSON of an Account.
type ReportedAccount struct {
	Account
	Oversold int64 `json:"oversold"`
}

// maxReport is the number of SKUs, and of differences, that a report lists at most.
const maxReport = 1_000

// NewReport returns a report without differences.
func NewReport() *Report {
	return &Report{OK: true, SKUs: []ReportedAccount{}, Differences: []Difference{}}
}

// AddAccount adds a SKU to the report. The error is nil.
func (r *Report) AddAccount(a Account) error {
	if r.Compared++; r.Compared > maxReport {
		r.Truncated = true
		return nil
	}
	r.SKUs = append(r.SKUs, ReportedAccount{a, a.Oversold()})
	return nil
}

// AddDifference adds a difference to the report, which is then not OK. The error is nil.
func (r *Report) AddDifference(d Difference) error {
	r.OK = false
	if r.Found++; r.Found > maxReport {
		r.Truncated = true
		return nil
	}
	r.Differences = append(r.Differences, d)
	return nil
}
