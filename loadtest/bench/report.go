package bench

import (
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

// print writes the table of the case, and below it what went wrong.
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
	header := table.Row{"strategy", "buyers", "orders/s", "refused/s", "spread"}
	var others []string
	for _, name := range []string{nothing, "redis", "conditional"} {
		if c.name != "grow" && c.figures(name, c.buyers) != nil {
			others = append(others, name)
			header = append(header, "to "+name)
		}
	}
	against := slices.ContainsFunc(c.rows, func(r *row) bool { return r.base != "" })
	if against {
		header = append(header, "to other")
	}
	header = append(header, "p50", "p99", "longest", "errors", "client", "shops", "a buyer", "right")
	var rows []table.Row
	for _, r := range c.rows {
		mine := r.figures(c.byP50)
		cells := table.Row{
			r.name, humanize.Comma(int64(r.buyers)),
			whole(r.median(func(r round) float64 { return r.OrdersPerSecond })),
			whole(r.median(func(r round) float64 { return r.AnswersPerSecond - r.OrdersPerSecond })),
			"-",
		}
		if middle := stats.Median(mine); len(mine) > 1 && middle > 0 {
			cells[len(cells)-1] = percent((slices.Max(mine) - slices.Min(mine)) / middle)
		}
		for _, other := range others {
			cells = append(cells, stats.Ratio(mine, c.figures(other, r.buyers)))
		}
		if against {
			cells = append(cells, stats.Ratio(mine, c.figures(r.base, r.buyers)))
		}
		rows = append(rows, append(cells,
			millis(r.median(p50)), millis(r.median(func(r round) float64 { return r.LatencyMS.P99 })),
			millis(slices.Max(r.collect(func(r round) float64 { return r.Longest }))), r.errors(), percent(r.median(func(r round) float64 { return r.Client })), percent(r.median(func(r round) float64 { return r.Shops })),
			r.memory(), r.right()))
	}
	return stats.Table(header, rows, 2, len(header)-1)
}

// figures are what the row of that name is compared by; nil if it is not there.
func (c *contest) figures(name string, buyers int) []float64 {
	for _, r := range c.rows {
		if r.name == name && r.buyers == buyers {
			return r.figures(c.byP50)
		}
	}
	return nil
}

func (r *row) figures(byP50 bool) []float64 {
	if byP50 {
		return r.collect(p50)
	}
	return r.collect(func(r round) float64 { return r.AnswersPerSecond })
}

func (r *row) collect(f func(round) float64) []float64 {
	var values []float64
	for _, one := range r.rounds {
		values = append(values, f(one))
	}
	return values
}

func (r *row) median(f func(round) float64) float64 { return stats.Median(r.collect(f)) }

func (r *row) errors() string {
	n := int64(0)
	for _, one := range r.rounds {
		n += one.Errors
	}
	return humanize.Comma(n)
}

func p50(r round) float64  { return r.LatencyMS.P50 }
func wrong(r round) string { return r.Wrong }

// memory is that of each buyer. Where there are few, it is noise.
func (r *row) memory() string {
	if each := r.rounds[0].BuyerBytes; each > 0 && r.buyers >= 1000 {
		return fmt.Sprintf("%.1f KB", float64(each)/1024)
	}
	return "-"
}

// first returns the first text of a round that is not empty.
func (r *row) first(f func(round) string) string {
	for _, one := range r.rounds {
		if s := f(one); s != "" {
			return s
		}
	}
	return ""
}

// right is yes or no, and nothing for the handler that has no books.
func (r *row) right() string {
	switch {
	case r.name == nothing:
		return "-"
	case r.first(wrong) != "":
		return "NO"
	}
	return "yes"
}

func whole(v float64) string   { return humanize.Comma(int64(math.Round(v))) }
func percent(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }

// millis shows milliseconds.
func millis(v float64) string {
	if v == 0 {
		return "-"
	}
	return time.Duration(v * float64(time.Millisecond)).Round(10 * time.Microsecond).String()
}
