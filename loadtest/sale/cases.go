package main

import (
	"fmt"

	"example.com/shop/loadtest/popularity"
	"example.com/shop/loadtest/stats"
)

// plenty is more than any round can sell.
const plenty = 1_000_000_000

// skew is Zipf's exponent: of 100 SKUs, the first is wanted by a quarter of the
// buyers.
const skew = 1.1

// contest is a case: what the buyers of a round want.
type contest struct {
	name    string
	about   string
	buyers  int
	skus    int
	units   int64 // of each SKU
	skewed  bool
	byDelay bool  // compared by p50, not by orders per second
	waiting []int // not a loop, but so many buyers at once, one number after the other, on one shop
}

// contests is the table of cases.
func contests(quick bool) []contest {
	waiting := []int{10, 100, 1_000, 10_000}
	if quick {
		waiting = waiting[:3]
	}
	return []contest{
		{name: "hot-64", about: "one SKU, plenty of stock, 64 buyers", buyers: 64, skus: 1, units: plenty},
		{name: "hot-512", about: "one SKU, plenty of stock, 512 buyers", buyers: 512, skus: 1, units: plenty},
		{name: "soldout", about: "one SKU without stock, 64 buyers", buyers: 64, skus: 1},
		{name: "even", about: "100 SKUs, each wanted as often as any other, 64 buyers", buyers: 64, skus: 100, units: plenty},
		{name: "skewed", about: "100 SKUs, the first wanted by a quarter of 64 buyers (Zipf)", buyers: 64, skus: 100, units: plenty, skewed: true},
		{name: "lone", about: "one SKU, one buyer", buyers: 1, skus: 1, units: plenty, byDelay: true},
		{name: "grow", about: "one SKU, ever more buyers at once who buy one unit each, on one fresh shop", skus: 1, units: plenty, waiting: waiting},
	}
}

// with returns the case with so many buyers.
func (c contest) with(buyers int) contest {
	c.buyers = buyers
	if len(c.waiting) > 0 {
		c.waiting = []int{buyers}
	}
	c.about = fmt.Sprintf("%s; --buyers %d", c.about, buyers)
	return c
}

// pick returns who buys what.
func (c contest) pick(skus []string) popularity.Pick {
	switch {
	case len(skus) == 1:
		return popularity.Only(skus[0])
	case c.skewed:
		return popularity.Skewed(skus, skew)
	}
	return popularity.Skewed(skus, 0)
}

// most returns how many buyers the largest of the cases has.
func most(cases []contest) int {
	n := 0
	for _, c := range cases {
		n = max(n, c.buyers, stats.Max(c.waiting))
	}
	return n
}
