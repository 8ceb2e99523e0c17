package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"

	"example.com/shop/loadtest/shops"
	"example.com/shop/loadtest/stats"
)

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
		{name: "grow", about: "10 to 10,000 buyers, who buy one unit each, all at the same moment, from one fresh shop",
			units: plenty, buyers: []int{10, 100, 1_000, 10_000}, once: true},
		{name: "skus-64", about: "64 SKUs, plenty of stock, 64 buyers: compared with hot-64, " +
			"it shows the cost of one lock for all SKUs", buyers: []int{64}, units: plenty, skus: 64},
		{name: "skus-512", about: "64 SKUs, plenty of stock, 512 buyers", buyers: []int{512}, units: plenty, skus: 64},
		{name: "carts-64", about: "three of 64 SKUs in each order, plenty of stock, 64 buyers", buyers: []int{64},
			units: plenty, skus: 64, least: 3, lines: 3},
		{name: "carts-512", about: "three of 64 SKUs in each order, plenty of stock, 512 buyers", buyers: []int{512},
			units: plenty, skus: 64, least: 3, lines: 3},
		{name: "zipf-64", about: "one to three of 1,000 SKUs in each order, the k-th in proportion to 1/k^1.2, " +
			"plenty of stock, 64 buyers", buyers: []int{64}, units: plenty, skus: 1000, lines: 3, skew: 1.2},
		{name: "mixed", about: "64 SKUs, plenty of stock, 64 buyers, who pay 60% of their orders, " +
			"cancel 10% and leave the rest pending", buyers: []int{64}, units: plenty, skus: 64, pay: 0.6, cancel: 0.1},
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

// lineup returns the contestants of a case: for each number of buyers, the strategies and the handler
// that does nothing.
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

// broken reports whether a row disagrees with the books.
func (c contest) broken() bool {
	return slices.ContainsFunc(c.rows, func(r *row) bool { return r.first(wrong) != "" })
}

// print writes the table of the case, and the problems below it.
func (c *contest) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s: %s\n%s", c.name, c.about, c.table())
	for _, r := range c.rows {
		if what := r.first(wrong); what != "" {
			fmt.Fprintf(out, "%s: WRONG: %s\n", r.name, what)
		}
		if what := r.first(func(r round) string { return r.Problem }); what != "" {
			fmt.Fprintf(out, "%s: %.200s\n", r.name, what)
		}
	}
}

func (c *contest) table() string {
	others := slices.DeleteFunc([]string{nothing, "redis", "conditional"}, func(name string) bool {
		return c.once || c.figures(name, c.rows[0].buyers) == nil
	})
	if slices.ContainsFunc(c.rows, func(r *row) bool { return r.base != "" }) {
		others = append(others, "") // stands for the base of each row
	}
	header := table.Row{"strategy", "buyers", "orders/s", "refused/s", "spread"}
	for _, name := range others {
		header = append(header, "to "+cmp.Or(name, "other"))
	}
	header = append(header, "p50", "p99", "longest", "errors", "a buyer", "right")
	var rows []table.Row
	for _, r := range c.rows {
		mine, spread, memory, right := c.figures(r.name, r.buyers), "-", "-", "yes"
		if middle := stats.Median(mine); len(mine) > 1 && middle > 0 {
			spread = fmt.Sprintf("%.0f%%", 100*(slices.Max(mine)-slices.Min(mine))/middle)
		}
		if bytes := r.rounds[0].BuyerBytes; bytes > 0 && r.buyers >= 1000 { // with few buyers, the figure is noise
			memory = fmt.Sprintf("%.1f KB", float64(bytes)/1024)
		}
		if r.name == nothing {
			right = "-"
		} else if r.first(wrong) != "" {
			right = "NO"
		}
		cells := table.Row{
			r.name, humanize.Comma(int64(r.buyers)),
			whole(r.median(func(r round) float64 { return r.OrdersPerSecond })),
			whole(r.median(func(r round) float64 { return r.AnswersPerSecond - r.OrdersPerSecond })),
			spread,
		}
		for _, other := range others {
			cells = append(cells, stats.Ratio(mine, c.figures(cmp.Or(other, r.base), r.buyers)))
		}
		errors := int64(0)
		for _, one := range r.rounds {
			errors += one.Errors
		}
		rows = append(rows, append(cells,
			millis(r.median(p50)), millis(r.median(func(r round) float64 { return r.LatencyMS.P99 })),
			millis(slices.Max(stats.Each(r.rounds, func(r round) float64 { return r.LatencyMS.Max }))), humanize.Comma(errors),
			memory, right))
	}
	return stats.Table(header, rows, 2, len(header)-1)
}

// figures returns the figures by which the row of this name is compared, or nil if there is no such row.
func (c *contest) figures(name string, buyers int) []float64 {
	i := slices.IndexFunc(c.rows, func(r *row) bool { return r.name == name && r.buyers == buyers })
	switch {
	case i < 0:
		return nil
	case c.byP50:
		return stats.Each(c.rows[i].rounds, p50)
	}
	return stats.Each(c.rows[i].rounds, func(r round) float64 { return r.AnswersPerSecond })
}

func (r *row) median(f func(round) float64) float64 { return stats.Median(stats.Each(r.rounds, f)) }

// first returns the first text of a round that is not empty.
func (r *row) first(f func(round) string) string { return cmp.Or(stats.Each(r.rounds, f)...) }

func p50(r round) float64  { return r.LatencyMS.P50 }
func wrong(r round) string { return r.Wrong }

func whole(v float64) string { return humanize.Comma(int64(math.Round(v))) }

// millis shows milliseconds.
func millis(v float64) string {
	if v == 0 {
		return "-"
	}
	return time.Duration(v * float64(time.Millisecond)).Round(10 * time.Microsecond).String()
}
