package bench

import (
	"fmt"

	"example.com/shop/loadtest/shops"
)

// plenty is more than any round can sell.
const plenty = 1_000_000_000

// contest is a case: how many buyers want how many SKUs, and what is compared.
type contest struct {
	name   string
	about  string
	buyers int
	units  int64 // of each SKU
	skus   int   // 0 for one
	byP50  bool  // compared by p50, not by answers per second
	crowds []int // grow: buyers at once, one number after the other, on one fresh shop

	least, lines int     // SKUs in an order, one unit of each; 0 for one
	skew         float64 // the k-th SKU is wanted in proportion to 1/k^skew
	pay, cancel  float64 // shares of the orders

	rows []*row // what came of it
}

func allCases() []contest {
	return []contest{
		{name: "hot-64", about: "one SKU, plenty of stock, 64 buyers", buyers: 64, units: plenty},
		{name: "hot-512", about: "one SKU, plenty of stock, 512 buyers", buyers: 512, units: plenty},
		{name: "soldout", about: "one SKU without stock, 64 buyers", buyers: 64},
		{name: "lone", about: "one SKU, one buyer; compared by p50", buyers: 1, units: plenty, byP50: true},
		{name: "grow", about: "ever more buyers, who buy one unit each at the same moment from one fresh shop", units: plenty, crowds: []int{10, 100, 1_000, 10_000}},
		{name: "skus-64", about: "64 SKUs, plenty of stock, 64 buyers: beside hot-64 it shows what one lock for all of them would cost", buyers: 64, units: plenty, skus: 64},
		{name: "skus-512", about: "64 SKUs, plenty of stock, 512 buyers", buyers: 512, units: plenty, skus: 64},
		{name: "carts-64", about: "three of 64 SKUs in each order, plenty of stock, 64 buyers", buyers: 64, units: plenty, skus: 64, least: 3, lines: 3},
		{name: "carts-512", about: "three of 64 SKUs in each order, plenty of stock, 512 buyers", buyers: 512, units: plenty, skus: 64, least: 3, lines: 3},
		{name: "zipf-64", about: "one to three of 1,000 SKUs in each order, the k-th wanted in proportion to 1/k^1.2, plenty of stock, 64 buyers", buyers: 64, units: plenty, skus: 1000, lines: 3, skew: 1.2},
		{name: "mixed", about: "64 SKUs, plenty of stock, 64 buyers, who pay 60% of their orders, cancel 10% and leave the rest pending", buyers: 64, units: plenty, skus: 64, pay: 0.6, cancel: 0.1},
	}
}

// with returns the case with another number of buyers; 0 for its own.
func (c contest) with(buyers int) contest {
	if buyers == 0 {
		return c
	}
	c.buyers = buyers
	if c.crowds != nil {
		c.crowds = []int{buyers}
	}
	c.about = fmt.Sprintf("%s; --buyers %d", c.about, buyers)
	return c
}

const nothing = "nothing" // the handler that does nothing

// row is a contestant of a case, and its rounds.
type row struct {
	name     string
	strategy string           // by which shops sell; empty: nothing
	shops    *fleet           // with the books; nil for nothing
	procs    []*shops.Process // that the buyers send their orders to
	base     string           // the row that this one is compared with beyond the usual; empty: none

	buyers int
	rounds []round
}

// lineup returns the contestants of a case.
func (r *run) lineup(c contest) []*row {
	var all []*row
	add := func(name, strategy string, f *fleet, base string) {
		all = append(all, &row{name: name, strategy: strategy, shops: f, procs: f.procs[strategy], base: base, buyers: c.buyers})
	}
	for _, s := range r.Strategies {
		if r.other == nil {
			add(s, s, r.own, "")
			continue
		}
		add(s, s, r.own, s+", other")
		add(s+", other", s, r.other, "")
	}
	return append(all, &row{name: nothing, procs: r.handlers, buyers: c.buyers})
}
