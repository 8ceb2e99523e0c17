package order

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"example.com/shop/internal/stock"
)

// Status is the state of an order.
type Status string

// An order begins as Pending and ends as one of the others. A free order, whose total is 0, begins as Paid.
const (
	Pending   Status = "pending"   // holds its units until ExpiresAt
	Paid      Status = "paid"      // its units are sold
	Cancelled Status = "cancelled" // its units are available again
	Expired   Status = "expired"   // was not paid in time; its units are available again
)

// Order is a buyer's purchase. Its JSON is what the API shows.
type Order struct {
	ID        string      `json:"id"` // UUIDv7
	Buyer     string      `json:"buyer"`
	Key       string      `json:"-"` // the idempotency key that placed the order
	Status    Status      `json:"status"`
	Lines     []Line      `json:"lines"` // in the order of the request, one per SKU
	Total     stock.Money `json:"total"`
	CreatedAt time.Time   `json:"created_at"` // UTC, by the database's clock, when the stock was read; in a batch up to a second off
	ExpiresAt time.Time   `json:"expires_at"` // by the same clock; from then on, the order cannot be paid

	FirstExpiry time.Time `json:"-"` // ExpiresAt before the hold was extended; zero if the hold was not extended
}

// Line is one SKU of an order, with its number of units.
type Line struct {
	SKU   string      `json:"sku"`
	Units int64       `json:"quantity"`
	Price stock.Money `json:"price"` // of one unit, when the order was placed
}

// SKUs returns the names of the SKUs in the order of the lines.
func (o Order) SKUs() []string {
	return Map(o.Lines, func(line Line) string { return line.SKU })
}

// Sorted returns the lines by the names of their SKUs. Transactions lock the rows of the stock in this order.
func (o Order) Sorted() []Line {
	return slices.SortedFunc(slices.Values(o.Lines), func(a, b Line) int { return cmp.Compare(a.SKU, b.SKU) })
}

// Movements returns the ledger's rows for the order's units, of the kind stock.Reserve, stock.Sell or stock.Release.
// fences has, by SKU, the fences under which the units are taken; it may be nil.
func (o Order) Movements(kind stock.Kind, fences map[string]int64, at time.Time) []stock.Movement {
	return Map(o.Sorted(), func(line Line) stock.Movement {
		return stock.Movement{
			ID: NewID(), SKU: line.SKU, Kind: kind, OrderID: o.ID, Level: kind.Change(line.Units), Fence: fences[line.SKU], At: at,
		}
	})
}

// Map returns the results of calling of with each element of a list.
func Map[E, T any](list []E, of func(E) T) []T {
	all := make([]T, len(list))
	for i, e := range list {
		all[i] = of(e)
	}
	return all
}

// NewID returns an id that sorts by time. It cannot fail: without random bytes, crypto/rand ends the program.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// Limits of a request.
const (
	MaxKey   = 255   // characters of an idempotency key
	MaxUnits = 1_000 // units of one SKU in an order
	MaxLines = 20    // lines of a request, before lines of the same SKU are merged
)

// This line compiles only if the highest total that the limits allow fits into an int64.
const _ int64 = stock.MaxPrice * MaxUnits * MaxLines

// Request is a buyer's request to place an order. Lines of the same SKU count as one line.
type Request struct {
	Buyer string
	Key   string // idempotency key: the buyer chooses one for each purchase
	Lines []Line // without prices
}

// Validate returns an error for the first rule that r breaks. It asks no store.
func (r Request) Validate() error {
	if err := CheckKey(r.Key); err != nil {
		return err
	}
	if err := CheckBuyer(r.Buyer); err != nil {
		return err
	}
	switch {
	case len(r.Lines) == 0:
		return ErrInvalid.with("an order needs a line")
	case len(r.Lines) > MaxLines:
		return ErrInvalid.with("%d lines, at most %d are allowed", len(r.Lines), MaxLines)
	}
	for i, line := range r.Lines {
		switch {
		case line.SKU == "":
			return ErrInvalid.with("line %d: sku is missing", i+1)
		case !stock.ValidName(line.SKU):
			return fmt.Errorf("sku %.80q: %w", line.SKU, ErrUnknownSKU)
		case line.Units < 1:
			return ErrInvalid.with("line %d: quantity is less than 1", i+1)
		case line.Units > MaxUnits:
			return ErrInvalid.with("line %d: quantity is more than %d", i+1, MaxUnits)
		}
	}
	for _, line := range r.merged() {
		if line.Units > MaxUnits {
			return ErrInvalid.with("sku %.80q: its lines want %d units, at most %d are allowed", line.SKU, line.Units, MaxUnits)
		}
	}
	return nil
}

// merged returns one line for each SKU, at the place of its first line, with the units of all its lines.
func (r Request) merged() []Line {
	lines := make([]Line, 0, len(r.Lines))
	for _, line := range r.Lines {
		i := slices.IndexFunc(lines, func(l Line) bool { return l.SKU == line.SKU })
		if i < 0 {
			i = len(lines)
			lines = append(lines, Line{SKU: line.SKU})
		}
		lines[i].Units += line.Units
	}
	return lines
}

// CheckKey returns ErrKeyMissing for an empty key, and ErrKeyInvalid for a key that is too long or not printable ASCII.
func CheckKey(key string) error {
	switch {
	case key == "":
		return ErrKeyMissing
	case len(key) > MaxKey:
		return ErrKeyInvalid.with("%d characters, at most %d are allowed", len(key), MaxKey)
	case strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }):
		return ErrKeyInvalid.with("only printable ASCII is allowed")
	}
	return nil
}

// BuyerRule says which names a buyer may have.
const BuyerRule = "1 to 64 letters, digits, '.', '_', '@', '-', the first a letter or a digit"

// CheckBuyer returns ErrBuyer unless a name follows BuyerRule.
func CheckBuyer(name string) error {
	if !buyerRule.MatchString(name) {
		return &Error{Code: ErrBuyer.Code, Text: fmt.Sprintf("invalid buyer %.80q: want "+BuyerRule, name)}
	}
	return nil
}

var buyerRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// Draft is an order that is being placed.
type Draft struct {
	Order              // without prices and times until Price sets them
	Fingerprint string // of the request

	// Think is the pause of a strategy between reading the stock and writing it, to make races show; 0 in production.
	Think time.Duration

	Replayed bool // set by Replay: an earlier request placed the order

	hold time.Duration // how long the order holds its units
}

// Fingerprint returns a hash of the lines, which tells two requests with the same key apart.
func Fingerprint(lines []Line) string {
	h := sha256.New()
	for _, line := range lines {
		fmt.Fprintf(h, "%q %d\n", line.SKU, line.Units)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Price sets the draft's prices, times and status. SKUs in two currencies are ErrInvalid; a SKU without a level is
// ErrUnknownSKU.
func (d *Draft) Price(levels Levels) error {
	lines := slices.Clone(d.Lines) // an error changes nothing
	total := stock.Money{Currency: levels.SKUs[lines[0].SKU].Price.Currency}
	for i := range lines {
		sku, read := levels.SKUs[lines[i].SKU]
		if !read {
			return ErrUnknownSKU
		}
		if sku.Price.Currency != total.Currency {
			return ErrInvalid.with("the price of sku %q is in %s and that of sku %q in %s: order them one by one",
				lines[0].SKU, total.Currency, sku.Name, sku.Price.Currency)
		}
		lines[i].Price = sku.Price
		total.Minor += sku.Price.Minor * lines[i].Units
	}
	d.Lines, d.Total, d.Status = lines, total, Pending
	if total.Minor == 0 {
		d.Status = Paid
	}
	d.CreatedAt, d.ExpiresAt = levels.At, levels.At.Add(d.hold)
	return nil
}

// Replay makes the draft the answer to a repeated request: the order of the key as it was first answered. Since then,
// only the status of the order and the end of its hold may have changed. ErrKeyReused: another request used the key.
func (d *Draft) Replay(used UsedKey) error {
	if used.Fingerprint != d.Fingerprint {
		return ErrKeyReused
	}
	d.Order, d.Replayed = used.Order, true
	if d.Status != Paid || d.Total.Minor > 0 {
		d.Status = Pending
	}
	if !d.FirstExpiry.IsZero() {
		d.ExpiresAt = d.FirstExpiry
	}
	return nil
}

// Levels are SKUs by name, as they were read at one moment.
type Levels struct {
	SKUs map[string]stock.SKU
	At   time.Time // by the database's clock
}

// Limited adds up, for each buyer, the units of limited SKUs in the orders, times sign.
func (l Levels) Limited(sign int64, orders ...Order) map[BuyerSKU]int64 {
	units := map[BuyerSKU]int64{}
	for _, o := range orders {
		for _, line := range o.Lines {
			if l.SKUs[line.SKU].LimitPerBuyer > 0 {
				units[BuyerSKU{o.Buyer, line.SKU}] += sign * line.Units
			}
		}
	}
	return units
}

// Cover returns ErrSoldOut for the first line of the draft that asks for more units than are available.
func (l Levels) Cover(d *Draft) error {
	for _, line := range d.Lines {
		if l.SKUs[line.SKU].Available < line.Units {
			return fmt.Errorf("sku %q: %w", line.SKU, ErrSoldOut)
		}
	}
	return nil
}

// Limits are the limits per buyer that a transaction checks when it places orders. The limits on units come from the
// levels by which the orders were priced.
type Limits struct {
	MaxOpen int                   // pending orders of a buyer; 0 for no limit
	Open    map[string]OpenOrders // as Tx.Open has counted them, by buyer
	Bought  map[BuyerSKU]int64    // as Tx.LockBought has counted them
}

// TooManyOpen returns an error if the order's buyer already has as many pending orders as are allowed.
func (l Limits) TooManyOpen(o Order) error {
	open := l.Open[o.Buyer]
	if l.MaxOpen == 0 || open.Count < l.MaxOpen {
		return nil
	}
	e := ErrTooManyOpen.with("%d are pending, at most %d are allowed; pay or cancel one", open.Count, l.MaxOpen)
	e.Wait = open.First.Sub(o.CreatedAt)
	return e
}

// Over returns an error if the order would exceed a limit. levels has its SKUs.
func (l Limits) Over(o Order, levels Levels) error {
	if err := l.TooManyOpen(o); err != nil {
		return err
	}
	for _, line := range o.Lines {
		limit := levels.SKUs[line.SKU].LimitPerBuyer
		left := max(0, limit-l.Bought[BuyerSKU{o.Buyer, line.SKU}])
		if limit > 0 && line.Units > left {
			return fmt.Errorf("sku %q: %w", line.SKU, ErrPurchaseLimit.with("at most %d for each buyer, %d of them left to buy", limit, left))
		}
	}
	return nil
}
