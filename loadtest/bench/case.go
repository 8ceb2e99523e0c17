package bench

import "example.com/shop/loadtest/shops"

// plenty is more units than any round can sell.
const plenty = 1_000_000_000

// contest is a case: numbers of buyers and SKUs, and the figure to compare.
type contest struct {
	name   string
	about  string
	buyers []int // concurrent buyers; each number is measured in turn
	units  int64 // of each SKU
	skus   int   // 0 for one
	byP50  bool  // compare p50, not answers per second
	once   bool  // each buyer buys once, all at the same moment, from one fresh shop; one round

	least, lines int     // SKUs in an order, one unit of each; 0 for one
	skew         float64 // the k-th SKU is wanted in proportion to 1/k^skew
	pay, cancel  float64 // shares of the orders

	rows []*row // the results
}

func allCases() []contest {
	return []contest{
		{name: "hot-64", about: "one SKU, plenty of stock, 64 buyers", buyers: []int{64}, units: plenty},
		{name: "hot-512", about: "one SKU, plenty of stock, 512 buyers", buyers: []int{512}, units: plenty},
		{name: "soldout", about: "one SKU without stock, 64 buyers", buyers: []int{64}},
		{name: "lone", about: "one SKU, one buyer; compared by p50", buyers: []int{1}, units: plenty, byP50: true},
		{name: "grow", about: "10 to 10,000 buyers, who buy one unit each, all at the same moment, from one fresh shop", units: plenty, buyers: []int{10, 100, 1_000, 10_000}, once: true},
		{name: "skus-64", about: "64 SKUs, plenty of stock, 64 buyers: compared with hot-64, it shows the cost of one lock for all SKUs", buyers: []int{64}, units: plenty, skus: 64},
		{name: "skus-512", about: "64 SKUs, plenty of stock, 512 buyers", buyers: []int{512}, units: plenty, skus: 64},
		{name: "carts-64", about: "three of 64 SKUs in each order, plenty of stock, 64 buyers", buyers: []int{64}, units: plenty, skus: 64, least: 3, lines: 3},
		{name: "carts-512", about: "three of 64 SKUs in each order, plenty of stock, 512 buyers", buyers: []int{512}, units: plenty, skus: 64, least: 3, lines: 3},
		{name: "zipf-64", about: "one to three of 1,000 SKUs in each order, the k-th in proportion to 1/k^1.2, plenty of stock, 64 buyers", buyers: []int{64}, units: plenty, skus: 1000, lines: 3, skew: 1.2},
		{name: "mixed", about: "64 SKUs, plenty of stock, 64 buyers, who pay 60% of their orders, cancel 10% and leave the rest pending", buyers: []int{64}, units: plenty, skus: 64, pay: 0.6, cancel: 0.1},
	}
}

const nothing = "nothing" // the handler that does nothing

// row is a contestant of a case, and its rounds.
type row struct {
	name     string
	strategy string           // of the shops; empty for nothing
	shops    *fleet           // has the books; nil for nothing
	procs    []*shops.Process // receive the buyers' orders
	base     string           // a further row to compare with; empty for none

	buyers int
	rounds []round
}

// lineup returns the contestants of a case: for each number of buyers, the strategies and the handler that does nothing.
func (r *run) lineup(c *contest) (all []*row) {
	for _, n := range c.buyers {
		for _, s := range r.Strategies {
			mine := &row{name: s, strategy: s, shops: r.own, procs: r.own.procs[s], buyers: n}
			all = append(all, mine)
			if r.other != nil {
				mine.base = s + ", other"
				all = append(all, &row{name: mine.base, strategy: s, shops: r.other, procs: r.other.procs[s], base: s, buyers: n})
			}
		}
		all = append(all, &row{name: nothing, procs: r.handlers, buyers: n})
	}
	return all
}
