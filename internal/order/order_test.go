package order

import (
	"errors"
	"testing"

	"example.com/shop/internal/stock"
)

// "total adds up the lines. Those of two currencies are ErrInvalid." The highest
// that the limits allow is no overflow.
func TestTotal(t *testing.T) {
	t.Parallel()
	line := func(units, minor int64, currency string) Line {
		return Line{SKU: "mug", Units: units, Price: stock.Money{Minor: minor, Currency: currency}}
	}
	most := make([]Line, MaxLines)
	for i := range most {
		most[i] = line(MaxUnits, stock.MaxPrice, "EUR")
	}
	for name, c := range map[string]struct {
		lines []Line
		want  stock.Money
		err   error
	}{
		"one line":       {[]Line{line(2, 1250, "EUR")}, stock.Money{Minor: 2500, Currency: "EUR"}, nil},
		"several":        {[]Line{line(2, 1250, "EUR"), line(3, 99, "EUR"), line(1, 0, "EUR")}, stock.Money{Minor: 2797, Currency: "EUR"}, nil},
		"the most":       {most, stock.Money{Minor: 2_000_000_000_000_000, Currency: "EUR"}, nil},
		"two currencies": {[]Line{line(1, 1250, "EUR"), line(1, 1250, "USD")}, stock.Money{}, ErrInvalid},
		"nothing to pay": {[]Line{line(1, 0, "EUR"), line(1, 0, "USD")}, stock.Money{}, ErrInvalid},
	} {
		if got, err := total(c.lines); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: got %v, %v, want %v, %v", name, got, err, c.want, c.err)
		}
	}
}
