package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"example.com/shop/loadtest/stats"
)

// against are the rows that others are compared with.
func against() []string { return []string{nothing, "redis", "conditional"} }

// fromBuyers is where memory per buyer is more than noise.
const fromBuyers = 1000

func (c *caseReport) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s: %s\n", c.Name, c.About)
	if c.grows {
		c.printGrowth(out)
		return
	}
	header := table.Row{"strategy", "orders/s", "refused/s"}
	for _, other := range against() {
		header = append(header, "to "+other)
	}
	t := newTable(append(header, "p50", "p99", "errors", "client", "shops", "right"))
	for _, r := range c.Rows {
		cells := table.Row{r.Name,
			whole(r.median(func(r round) float64 { return r.OrdersPerSecond })),
			whole(r.median(func(r round) float64 { return r.RefusalsPerSecond }))}
		for _, other := range against() {
			cells = append(cells, ratio(stats.Ratio(c.figures(r.Name), c.figures(other))))
		}
		t.AppendRow(append(cells,
			millis(r.median(func(r round) float64 { return r.P50 })),
			millis(r.median(func(r round) float64 { return r.P99 })),
			r.errors(),
			percent(r.median(func(r round) float64 { return r.Client })),
			percent(r.median(func(r round) float64 { return r.Shops })),
			r.right()))
	}
	c.render(out, t)
}

func (c *caseReport) printGrowth(out io.Writer) {
	t := newTable(table.Row{"buyers", "strategy", "answers/s", "p50", "p99", "longest", "idle", "peak", "a buyer", "errors", "right"})
	for _, r := range c.Rows {
		one := r.Rounds[0]
		idle, peak, each := "-", "-", "-"
		if one.PeakBytes > 0 {
			idle, peak = mega(one.IdleBytes), mega(one.PeakBytes)
			if r.Buyers >= fromBuyers {
				each = fmt.Sprintf("%.1f KB", float64(one.PeakBytes-one.IdleBytes)/float64(r.Buyers)/1024)
			}
		}
		t.AppendRow(table.Row{humanize.Comma(int64(r.Buyers)), r.Name, whole(one.OrdersPerSecond + one.RefusalsPerSecond),
			millis(one.P50), millis(one.P99), millis(one.Longest), idle, peak, each, r.errors(), r.right()})
	}
	c.render(out, t)
}

// figures are what a contestant is compared by, round by round; nil if it was not
// there.
func (c *caseReport) figures(name string) []float64 {
	i := slices.IndexFunc(c.Rows, func(r *row) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return c.Rows[i].collect(func(r round) float64 {
		if c.byDelay {
			return r.P50
		}
		return r.OrdersPerSecond + r.RefusalsPerSecond
	})
}

// right reports whether every row is.
func (c *caseReport) right() bool {
	return !slices.ContainsFunc(c.Rows, func(r *row) bool { return r.wrong() != "" })
}

func (r *row) collect(f func(round) float64) []float64 {
	var values []float64
	for _, one := range r.Rounds {
		values = append(values, f(one))
	}
	return values
}

func (r *row) median(f func(round) float64) float64 { return stats.Median(r.collect(f)) }

func (r *row) errors() string {
	var n int64
	for _, one := range r.Rounds {
		n += one.Errors
	}
	return humanize.Comma(n)
}

// wrong is the first thing that is, in any round.
func (r *row) wrong() string {
	for _, one := range r.Rounds {
		if one.Wrong != "" {
			return one.Wrong
		}
	}
	return ""
}

// firstError is that of a buyer; empty if there was none.
func (r *row) firstError() string {
	for _, one := range r.Rounds {
		if one.FirstError != "" {
			return one.FirstError
		}
	}
	return ""
}

// right is yes, or no, and nothing for the handler that has no books.
func (r *row) right() string {
	switch {
	case r.Name == nothing:
		return "-"
	case r.wrong() != "":
		return "NO"
	}
	return "yes"
}

// newTable has a line under the header and nothing else; all columns but the last
// and those of names are numbers.
func newTable(header table.Row) table.Writer {
	t := table.NewWriter()
	s := table.StyleLight
	s.Options = table.Options{SeparateHeader: true}
	s.Format.Header = text.FormatDefault
	s.Box.PaddingLeft, s.Box.PaddingRight = "", "  "
	t.SetStyle(s)
	t.AppendHeader(header)
	var right []table.ColumnConfig
	for i, name := range header[:len(header)-1] {
		if name != "strategy" {
			right = append(right, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t.SetColumnConfigs(right)
	return t
}

// render writes the table, and below it what went wrong.
func (c *caseReport) render(out io.Writer, t table.Writer) {
	for line := range strings.Lines(t.Render()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
	for _, r := range c.Rows {
		if wrong := r.wrong(); wrong != "" {
			fmt.Fprintf(out, "%s: WRONG: %s\n", r.Name, wrong)
		}
		if text := r.firstError(); text != "" {
			fmt.Fprintf(out, "%s: first error: %.200s\n", r.Name, text)
		}
	}
}

func whole(v float64) string   { return humanize.Comma(int64(math.Round(v))) }
func percent(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }
func mega(bytes int64) string  { return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20)) }

func ratio(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

// millis shows milliseconds in a handful of characters.
func millis(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f ms", v)
	case v < 9999.5:
		return fmt.Sprintf("%.0f ms", v)
	}
	return fmt.Sprintf("%.1f s", v/1000)
}
