package stock_test

import (
	"testing"

	"example.com/shop/internal/stock"
)

// "String returns the amount as people write it"
func TestMoney_String(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		minor    int64
		currency string
		want     string
	}{
		{1000, "EUR", "10.00 EUR"},
		{5, "USD", "0.05 USD"},
		{0, "EUR", "0.00 EUR"},
		{stock.MaxPrice, "EUR", "1000000000.00 EUR"},
		{1000, "JPY", "1000 JPY"},
		{1005, "KWD", "1.005 KWD"},
	} {
		if got := (stock.Money{Minor: c.minor, Currency: c.currency}).String(); got != c.want {
			t.Errorf("%d %s: got %q, want %q", c.minor, c.currency, got, c.want)
		}
	}
}

func TestMoney_Times(t *testing.T) {
	t.Parallel()
	got := stock.Money{Minor: 1250, Currency: "EUR"}.Times(3)
	if want := (stock.Money{Minor: 3750, Currency: "EUR"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
