package bench

import (
	"fmt"

	"example.com/shop/loadtest/child"
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
	crowds []int // grow: so many buyers at once, one number after the other, on one fresh shop

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
	strategy string           // that shops are asked for; empty: nothing
	shops    *fleet           // with the books; nil for nothing
	procs    []*child.Process // that the buyers send their orders to
	base     string           // the row that this one is compared with beyond the usual; empty: none

	buyers int
	rounds []round
}

// lineup returns the contestants of a case.
func (r *run) lineup(c contest) []*row {
	var all []*row
	add := func(name, strategy string, shops *fleet, base string) {
		all = append(all, &row{name: name, strategy: strategy, shops: shops, procs: shops.procs, base: base, buyers: c.buyers})
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
