package result

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
)

// Column is one figure of a race. Adding one is adding a row to Columns.
type Column struct {
	Name   string
	Help   string // in --help; empty for what is not in the terminal's table
	In     Place
	Number func(Strategy) float64
	text   func(float64) string
}

// Place is a set of the tables that have a column.
type Place int

// The tables.
const (
	Terminal Place = 1 << iota
	Page
)

// Columns are the figures between a strategy's name and its verdict.
func Columns(in Place) []Column {
	return slices.DeleteFunc([]Column{
		{"orders", "orders that the shop's audit found after the race", Terminal | Page,
			func(s Strategy) float64 { return float64(s.Orders) }, Rounded},
		{"oversold", "units in orders beyond those supplied; counted from orders, because a lost update oversells while the stock column reads zero", Terminal,
			func(s Strategy) float64 { return float64(s.Oversold) }, Rounded},
		{"undersold", "units in no order although buyers went away without one", Terminal,
			func(s Strategy) float64 { return float64(s.Undersold) }, Rounded},
		{"refused", "buyers who were told that it is sold out", Terminal | Page,
			func(s Strategy) float64 { return float64(s.Refused) }, Rounded},
		{"errors", "buyers with another answer, or none after several tries", Terminal | Page,
			func(s Strategy) float64 { return float64(s.Errors) }, Rounded},
		{"answers/s", "orders and refusals per second, from the moment all buyers were released to the last answer", Terminal | Page,
			func(s Strategy) float64 { return s.AnswersPerSecond }, Rounded},
		{"orders/s", "", Page,
			func(s Strategy) float64 { return s.OrdersPerSecond }, Rounded},
		{"p50", "how long half of the buyers waited at most, from that same moment, so that the time in a queue counts; with --duration, from the answer to the buyer's order before", Terminal | Page,
			func(s Strategy) float64 { return s.LatencyMS.P50 }, Milliseconds},
		{"p90", "", Page,
			func(s Strategy) float64 { return s.LatencyMS.P90 }, Milliseconds},
		{"p99", "the same of 99 of 100 buyers", Terminal | Page,
			func(s Strategy) float64 { return s.LatencyMS.P99 }, Milliseconds},
		{"longest", "", Page,
			func(s Strategy) float64 { return s.LatencyMS.Max }, Milliseconds},
	}, func(c Column) bool { return c.In&in == 0 })
}

// Show shows the figure of a strategy.
func (c Column) Show(s Strategy) string { return c.text(c.Number(s)) }

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
