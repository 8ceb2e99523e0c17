package stock

import "fmt"

// Money is an amount in the minor unit of its currency (cents for EUR).
type Money struct {
	Minor    int64
	Currency string // ISO 4217, three capital letters
}

// Times returns the price of n units.
func (m Money) Times(n int64) Money {
	return Money{Minor: m.Minor * n, Currency: m.Currency}
}

// String returns the amount as people write it: 10.00 EUR, 1000 JPY, 1.000 KWD.
// It is for amounts that are not negative.
func (m Money) String() string {
	switch m.Currency {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return fmt.Sprintf("%d %s", m.Minor, m.Currency)
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return fmt.Sprintf("%d.%03d %s", m.Minor/1000, m.Minor%1000, m.Currency)
	}
	return fmt.Sprintf("%d.%02d %s", m.Minor/100, m.Minor%100, m.Currency)
}
