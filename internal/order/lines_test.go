package order_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store/storetest"
)

// cart is a request of several lines.
func cart(key string, lines ...order.RequestLine) order.Request {
	return order.Request{Buyer: "ann", Key: key, Lines: lines}
}

// wantLevel fails unless the SKU is at this level and the audit clean.
func (b *bundle) wantLevel(t *testing.T, sku string, available, reserved int64) {
	t.Helper()
	want := stock.Level{Supplied: available + reserved, Available: available, Reserved: reserved}
	if got := b.audit(t, sku).Level; got != want {
		t.Errorf("%s: level %v, want %v", sku, got, want)
	}
}

// "Lines of the same SKU count as one line", others stay in the buyer's order, and
// the total is the shop's own. "The same request again gets the same order", also
// where it says the same in other lines.
func TestService_Place_lines(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setupIn(t, startLab(t, db), db, lock.NewMemory(), 10*time.Second)
		mugs, hats := stock.Money{Minor: 1250, Currency: "EUR"}, stock.Money{Minor: 99, Currency: "EUR"}
		for _, s := range offered(b) {
			mug, hat := "mug-"+s.Name, "hat-"+s.Name
			b.supplyAt(t, mugs, mug, 10)
			b.supplyAt(t, hats, hat, 20)
			place := func(lines ...order.RequestLine) (order.Order, bool, error) {
				r := cart(s.Name, lines...)
				r.Strategy = s.Name
				return b.Place(t.Context(), r)
			}
			o, replayed, err := place(order.RequestLine{SKU: mug, Units: 1}, order.RequestLine{SKU: hat, Units: 4}, order.RequestLine{SKU: mug, Units: 2})
			if err != nil || replayed {
				t.Fatalf("%s: Place: replayed %v, %v", s.Name, replayed, err)
			}
			want := []order.Line{{SKU: mug, Units: 3, Price: mugs}, {SKU: hat, Units: 4, Price: hats}}
			if diff := cmp.Diff(want, o.Lines); diff != "" {
				t.Errorf("%s: lines (-want +got):\n%s", s.Name, diff)
			}
			if want := (stock.Money{Minor: 3*1250 + 4*99, Currency: "EUR"}); o.Total != want {
				t.Errorf("%s: total %v, want %v", s.Name, o.Total, want)
			}
			for name, lines := range map[string][]order.RequestLine{
				"merged": {{SKU: mug, Units: 3}, {SKU: hat, Units: 4}},
				"split":  {{SKU: mug, Units: 3}, {SKU: hat, Units: 1}, {SKU: hat, Units: 3}},
			} {
				again, replayed, err := place(lines...)
				if err != nil || !replayed {
					t.Errorf("%s, %s: replayed %v, %v", s.Name, name, replayed, err)
				}
				if diff := cmp.Diff(o, again); diff != "" {
					t.Errorf("%s, %s: another order (-first +again):\n%s", s.Name, name, diff)
				}
			}
			for name, lines := range map[string][]order.RequestLine{
				"one line less": {{SKU: mug, Units: 3}},
				"another order": {{SKU: hat, Units: 4}, {SKU: mug, Units: 3}},
			} {
				if _, _, err := place(lines...); !errors.Is(err, order.ErrKeyReused) {
					t.Errorf("%s, %s: %v, want ErrKeyReused", s.Name, name, err)
				}
			}
			b.wantLevel(t, mug, 7, 3)
			b.wantLevel(t, hat, 16, 4)
		}
	})
}

// "A refused order changes no row", whichever of its lines is refused, and by
// every strategy, also the wrong ones. The error names the SKU.
func TestService_Place_allOrNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setupIn(t, startLab(t, db), db, lock.NewMemory(), 10*time.Second)
		dollar := stock.Money{Minor: 1, Currency: "USD"}
		for _, s := range offered(b) {
			first, last, foreign := "a-"+s.Name, "z-"+s.Name, "usd-"+s.Name
			b.supply(t, first, 5)
			b.supply(t, last, 5)
			b.supplyAt(t, dollar, foreign, 5)
			for name, c := range map[string]struct {
				lines []order.RequestLine
				want  error
				names string
			}{
				"first sold out": {[]order.RequestLine{{SKU: first, Units: 6}, {SKU: last, Units: 1}}, stock.ErrSoldOut, first},
				"last sold out":  {[]order.RequestLine{{SKU: first, Units: 1}, {SKU: last, Units: 6}}, stock.ErrSoldOut, last},
				"sold out, sum":  {[]order.RequestLine{{SKU: last, Units: 3}, {SKU: first, Units: 1}, {SKU: last, Units: 3}}, stock.ErrSoldOut, last},
				"unknown":        {[]order.RequestLine{{SKU: last, Units: 1}, {SKU: "cup", Units: 1}}, stock.ErrUnknownSKU, "cup"},
				"impossible":     {[]order.RequestLine{{SKU: last, Units: 1}, {SKU: "c?p", Units: 1}}, stock.ErrUnknownSKU, "c?p"},
				"two currencies": {[]order.RequestLine{{SKU: last, Units: 1}, {SKU: foreign, Units: 1}}, order.ErrInvalid, foreign},
			} {
				r := cart("key-"+s.Name, c.lines...)
				r.Strategy = s.Name
				_, _, err := b.Place(t.Context(), r)
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), `"`+c.names+`"`) {
					t.Errorf("%s, %s: %v, want %v that names %s", s.Name, name, err, c.want, c.names)
				}
			}
			for _, sku := range []string{first, last, foreign} {
				b.wantLevel(t, sku, 5, 0)
			}
			r := buy("key-"+s.Name, first, 1)
			r.Strategy = s.Name
			if _, replayed, err := b.Place(t.Context(), r); err != nil || replayed {
				t.Errorf("%s: the key of a refused order: replayed %v, %v", s.Name, replayed, err)
			}
		}
	})
}

// All or nothing also where the units of one line go between the reading and the
// transaction, after those of the other were taken in it.
func TestService_Place_lastLineGone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setupIn(t, startLab(t, db), db, lock.NewMemory(), 10*time.Second)
		for _, s := range offered(b) {
			if !s.Promises {
				continue
			}
			first, last := "a-"+s.Name, "z-"+s.Name
			b.supply(t, first, 5)
			b.supply(t, last, 1)
			b.stock.afterRead = func() {
				other := buy("other-"+s.Name, last, 1)
				other.Strategy = "conditional" // no lock, so that it can come in between
				if _, _, err := b.Place(t.Context(), other); err != nil {
					t.Errorf("other: %v", err)
				}
			}
			r := cart(s.Name, order.RequestLine{SKU: first, Units: 2}, order.RequestLine{SKU: last, Units: 1})
			r.Strategy = s.Name
			if _, _, err := b.Place(t.Context(), r); !errors.Is(err, stock.ErrSoldOut) || !strings.Contains(err.Error(), last) {
				t.Errorf("%s: %v, want ErrSoldOut that names %s", s.Name, err, last)
			}
			b.wantLevel(t, first, 5, 0)
			b.wantLevel(t, last, 0, 1)
		}
	})
}

// The wrong strategies stay wrong: of two buyers on two instances who read the
// same stock, each is sold the only unit of both SKUs.
func TestService_Place_linesOversold(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		shops := threeShops(t, db)
		for _, strategy := range []string{"none", "mutex"} {
			skus := []string{"mug-" + strategy, "hat-" + strategy}
			place := func(shop int) {
				r := cart(strings.Repeat(strategy, shop+1))
				r.Strategy = strategy
				for _, sku := range skus {
					r.Lines = append(r.Lines, order.RequestLine{SKU: sku, Units: 1})
				}
				if _, _, err := shops[shop].Place(t.Context(), r); err != nil {
					t.Errorf("%s: %v", strategy, err)
				}
			}
			for _, sku := range skus {
				shops[0].supply(t, sku, 1)
			}
			shops[0].stock.afterRead = func() { place(1) }
			place(0)
			for _, sku := range skus {
				var account stock.Account
				err := shops[0].orders.Audit(t.Context(), sku,
					func(a stock.Account) error { account = a; return nil },
					func(stock.Difference) error { return nil })
				if err != nil || account.Oversold() != 1 {
					t.Errorf("%s: account of %s %+v, %v, want 1 oversold", strategy, sku, account, err)
				}
			}
		}
	})
}

// Each line's units are sold, or given back, once.
func TestService_endsLines(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		b := setup(t, db, lock.NewMemory(), 10*time.Second)
		skus := []string{"mug", "hat", "cup"}
		for _, sku := range skus {
			b.supply(t, sku, 10)
		}
		place := func(key string) order.Order {
			o, _, err := b.Place(t.Context(), cart(key,
				order.RequestLine{SKU: "mug", Units: 1}, order.RequestLine{SKU: "hat", Units: 2}, order.RequestLine{SKU: "cup", Units: 3}))
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		paid, cancelled, expired := place("k1"), place("k2"), place("k3")
		if _, err := b.Pay(t.Context(), "ann", paid.ID); err != nil {
			t.Error(err)
		}
		if _, err := b.Cancel(t.Context(), "ann", cancelled.ID); err != nil {
			t.Error(err)
		}
		b.makeDue(t, expired)
		if n, err := b.ExpireDue(t.Context(), 10); n != 1 || err != nil {
			t.Errorf("expired %d, %v, want 1", n, err)
		}
		for i, sku := range skus {
			sold := int64(i + 1)
			want := stock.Level{Supplied: 10, Available: 10 - sold, Sold: sold}
			b.wantEnd(t, paid, order.Paid, sku, want)
			b.wantEnd(t, cancelled, order.Cancelled, sku, want)
			b.wantEnd(t, expired, order.Expired, sku, want)
		}
		if got, err := b.Order(t.Context(), "ann", paid.ID); err != nil || !slices.Equal(got.Lines, paid.Lines) {
			t.Errorf("lines %v, %v, want them as they were placed: %v", got.Lines, err, paid.Lines)
		}
	})
}
