package stock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/stock"
)

// "NewSKU checks its arguments and returns a SKU with all units available. The
// error is an ErrInvalid that names what is wrong."
func TestNewSKU(t *testing.T) {
	t.Parallel()
	euro := func(minor int64) stock.Money { return stock.Money{Minor: minor, Currency: "EUR"} }
	for _, c := range []struct {
		name    string
		price   stock.Money
		units   int64
		invalid string // what the error names, empty for none
	}{
		{"mug", euro(1250), 100, ""},
		{"0", euro(0), 0, ""},
		{"a.b_c-d.9", euro(stock.MaxPrice), stock.MaxUnits, ""},
		{strings.Repeat("a", 64), euro(1), 1, ""},
		{"", euro(1), 1, "sku"},
		{strings.Repeat("a", 65), euro(1), 1, "sku"},
		{"Mug", euro(1), 1, "sku"},
		{"-mug", euro(1), 1, "sku"},
		{".", euro(1), 1, "sku"},
		{"mug\n", euro(1), 1, "sku"},
		{"mug cup", euro(1), 1, "sku"},
		{"müg", euro(1), 1, "sku"},
		{"mug/1", euro(1), 1, "sku"},
		{"mug{1}", euro(1), 1, "sku"}, // would choose a Redis slot
		{"mug", euro(-1), 1, "price"},
		{"mug", euro(stock.MaxPrice + 1), 1, "price"},
		{"mug", stock.Money{Minor: 1}, 1, "currency"},
		{"mug", stock.Money{Minor: 1, Currency: "eur"}, 1, "currency"},
		{"mug", stock.Money{Minor: 1, Currency: "EURO"}, 1, "currency"},
		{"mug", stock.Money{Minor: 1, Currency: "EUR\n"}, 1, "currency"},
		{"mug", euro(1), -1, "units"},
		{"mug", euro(1), stock.MaxUnits + 1, "units"},
	} {
		now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("east", 3600))
		got, err := stock.NewSKU(c.name, c.price, c.units, now)
		if c.invalid != "" {
			if !errors.Is(err, stock.ErrInvalid) || !strings.Contains(err.Error(), c.invalid) {
				t.Errorf("%.80q %+v %d: got %v, want ErrInvalid that names the %s", c.name, c.price, c.units, err, c.invalid)
			}
			continue
		}
		want := stock.SKU{Name: c.name, Price: c.price, Level: stock.Level{Supplied: c.units, Available: c.units}, CreatedAt: now.UTC()}
		if err != nil || got != want {
			t.Errorf("%.80q %+v %d: got %+v, %v, want %+v", c.name, c.price, c.units, got, err, want)
		}
	}
}

func TestLevel_String(t *testing.T) {
	t.Parallel()
	got := stock.Level{Supplied: 10, Available: 7, Reserved: 2, Sold: 1}.String()
	if want := "supplied 10, available 7, reserved 2, sold 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// "Balanced reports whether every supplied unit is in exactly one place."
func TestLevel_Balanced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level stock.Level
		want  bool
	}{
		{stock.Level{}, true},
		{stock.Level{Supplied: 10, Available: 7, Reserved: 2, Sold: 1}, true},
		{stock.Level{Supplied: 10, Available: 7, Reserved: 2}, false},
		{stock.Level{Supplied: 10, Available: 11, Reserved: -1}, false},
		{stock.Level{Supplied: 10, Available: -1, Reserved: 11}, false},
		{stock.Level{Supplied: 10, Reserved: 11, Sold: -1}, false},
		{stock.Level{Supplied: -1, Available: -1}, false},
	} {
		if got := c.level.Balanced(); got != c.want {
			t.Errorf("%+v: got %v, want %v", c.level, got, c.want)
		}
	}
}
