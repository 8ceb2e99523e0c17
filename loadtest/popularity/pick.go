package popularity

import (
	"math/rand/v2"
)

// Pick returns a function for one buyer, who calls it for each order to learn
// which SKU to buy. Buyers of the same number buy the same.
type Pick func(buyer uint64) func() string

// Only has everybody buy the same SKU.
func Only(sku string) Pick {
	return func(uint64) func() string { return func() string { return sku } }
}

// Skewed has the k-th SKU bought in proportion to 1/k^skew: 0 is even. With 100
// SKUs and 1.1, the first one gets a quarter of all orders, the first ten two
// thirds.
func Skewed(skus []string, skew float64) Pick {
	ranks := Zipf(len(skus), skew)
	return func(buyer uint64) func() string {
		r := rand.New(rand.NewPCG(buyer, 1))
		return func() string { return skus[ranks.One(r)] }
	}
}
