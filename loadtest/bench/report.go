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

	"example.com/shop/loadtest/stats"
)

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
			spread = percent((slices.Max(mine) - slices.Min(mine)) / middle)
		}
		if each := r.rounds[0].BuyerBytes; each > 0 && r.buyers >= 1000 { // with few buyers, the figure is noise
			memory = fmt.Sprintf("%.1f KB", float64(each)/1024)
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
			millis(slices.Max(r.collect(func(r round) float64 { return r.Longest }))), humanize.Comma(errors),
			memory, right))
	}
	return stats.Table(header, rows, 2, len(header)-1)
}

// figures returns the figures by which the row of this name is compared, or nil if there is no such row.
func (c *contest) figures(name string, buyers int) []float64 {
	for _, r := range c.rows {
		switch {
		case r.name != name || r.buyers != buyers:
		case c.byP50:
			return r.collect(p50)
		default:
			return r.collect(func(r round) float64 { return r.AnswersPerSecond })
		}
	}
	return nil
}

func (r *row) collect(f func(round) float64) []float64 {
	var values []float64
	for _, one := range r.rounds {
		values = append(values, f(one))
	}
	return values
}

func (r *row) median(f func(round) float64) float64 { return stats.Median(r.collect(f)) }

// first returns the first text of a round that is not empty.
func (r *row) first(f func(round) string) string {
	for _, one := range r.rounds {
		if s := f(one); s != "" {
			return s
		}
	}
	return ""
}

func p50(r round) float64  { return r.LatencyMS.P50 }
func wrong(r round) string { return r.Wrong }

func whole(v float64) string   { return humanize.Comma(int64(math.Round(v))) }
func percent(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }

// millis shows milliseconds.
func millis(v float64) string {
	if v == 0 {
		return "-"
	}
	return time.Duration(v * float64(time.Millisecond)).Round(10 * time.Microsecond).String()
}
