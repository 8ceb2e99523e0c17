package result

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/stats"
)

// Column is one figure of a race. Adding one is adding a row to Columns.
type Column struct {
	Name   string
	Help   string // in --help; empty for what is not in the terminal's table
	Kind   Kind
	In     Place
	Number func(Strategy) float64
}

// Kind is how a figure is shown.
type Kind int

// The kinds of figures.
const (
	Count Kind = iota
	Rate       // per second
	Wait       // milliseconds
)

// Place is a set of the tables that have a column.
type Place int

// The tables.
const (
	Terminal Place = 1 << iota
	Page
	Compare
)

// Columns are the figures between a strategy's name and its verdict.
func Columns(in Place) []Column {
	return slices.DeleteFunc([]Column{
		{"orders", "orders that the shop's audit found after the race; with --lines, orders that were acknowledged", Count, Terminal | Page,
			func(s Strategy) float64 { return float64(s.Orders) }},
		{"oversold", "units in orders beyond those supplied; counted from orders, because a lost update oversells while the stock column reads zero. Leftovers of one SKU do not offset overselling another", Count, Terminal,
			func(s Strategy) float64 { return float64(s.Oversold) }},
		{"undersold", "units in no order although buyers went away without one; refused carts of several SKUs do not count", Count, Terminal,
			func(s Strategy) float64 { return float64(s.Undersold) }},
		{"refused", "buyers who were told that it is sold out", Count, Terminal | Page,
			func(s Strategy) float64 { return float64(s.Refused) }},
		{"errors", "buyers with another answer, or none after several tries", Count, Terminal | Page,
			func(s Strategy) float64 { return float64(s.Errors) }},
		{"answers/s", "orders and refusals per second, from the moment all buyers were released to the last answer", Rate, Terminal | Page | Compare,
			func(s Strategy) float64 { return s.AnswersPerSecond }},
		{"orders/s", "", Rate, Page | Compare,
			func(s Strategy) float64 { return s.OrdersPerSecond }},
		{"p50", "how long half of the buyers waited at most, from that same moment, so that the time in a queue counts; with --duration, from the answer to the buyer's order before", Wait, Terminal | Page | Compare,
			func(s Strategy) float64 { return s.LatencyMS.P50 }},
		{"p90", "", Wait, Page,
			func(s Strategy) float64 { return s.LatencyMS.P90 }},
		{"p99", "the same of 99 of 100 buyers", Wait, Terminal | Page | Compare,
			func(s Strategy) float64 { return s.LatencyMS.P99 }},
		{"longest", "", Wait, Page,
			func(s Strategy) float64 { return s.LatencyMS.Max }},
	}, func(c Column) bool { return c.In&in == 0 })
}

// Spread is that of a strategy's rounds. A single round has no width.
func (c Column) Spread(s Strategy) stats.Spread {
	if all, several := s.Spread[c.Name]; several {
		return all
	}
	return stats.SpreadOf([]float64{c.Number(s)})
}

// Rows are the lines of a strategy in a table, each a name and a figure by column. After several rounds the second and
// the third have the least and the greatest figures.
func (s Strategy) Rows(columns []Column) [][]string {
	rows := [][]string{{s.Name}, {"  least"}, {"  greatest"}}
	for _, c := range columns {
		spread := c.Spread(s)
		figure := spread.Median
		if c.Kind == Count {
			figure = c.Number(s)
		}
		for i, n := range []float64{figure, spread.Least, spread.Greatest} {
			rows[i] = append(rows[i], c.Show(n))
		}
	}
	if len(s.Spread) == 0 {
		return rows[:1]
	}
	return rows
}

// Show shows a figure.
func (c Column) Show(n float64) string {
	if c.Kind == Wait {
		return Milliseconds(n)
	}
	return Rounded(n)
}

// Milliseconds shows a duration with the digits that matter.
func Milliseconds(ms float64) string {
	if ms < 10_000 {
		return Rounded(ms) + " ms"
	}
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// Rounded shows a number with one decimal below 10 and none above.
func Rounded(n float64) string {
	if n < 10 {
		return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64)
	}
	return humanize.Comma(int64(n + 0.5))
}
