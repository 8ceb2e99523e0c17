package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// width is how many columns of a terminal the output fits.
const width = 100

// Printer writes a report for people.
type Printer struct {
	Out   io.Writer
	Color bool
}

// Table prints one line per strategy.
func (p Printer) Table(r Report) error {
	rendered := p.render(r, "  ")
	if widest(rendered) > width {
		rendered = p.render(r, " ")
	}
	_, err := fmt.Fprintln(p.Out, rendered)
	return err
}

func (p Printer) render(r Report, gap string) string {
	t := table.NewWriter()
	t.SetStyle(style(gap))
	t.AppendHeader(table.Row{"strategy", "supplied", "orders", "oversold", "undersold",
		"refused", "errors", "orders/s", "p50", "p99", "verdict"})
	for _, s := range r.Strategies {
		t.AppendRow(table.Row{s.Name, s.Supplied, s.Orders, s.Oversold, s.Undersold,
			s.Refused, s.Errors, strconv.FormatFloat(s.OrdersPerSecond, 'f', 0, 64),
			wait(s.LatencyMS.P50), wait(s.LatencyMS.P99), p.verdict(s)})
	}
	var right []table.ColumnConfig
	for column := 2; column <= 10; column++ {
		right = append(right, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	var lines []string
	for line := range strings.Lines(t.Render()) {
		// The gap before the first column goes, in the line under the header as well.
		lines = append(lines, strings.TrimRight(string([]rune(line)[len(gap):]), " \n"))
	}
	return strings.Join(lines, "\n")
}

// style has a line under the header and nothing else; gap stands before each
// column.
func style(gap string) table.Style {
	s := table.StyleLight
	s.Options = table.Options{SeparateHeader: true}
	s.Format.Header = text.FormatDefault
	s.Box.PaddingLeft, s.Box.PaddingRight = gap, ""
	return s
}

// wait shows milliseconds in at most six characters.
func wait(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1fms", ms)
	case ms < 9999.5:
		return fmt.Sprintf("%.0fms", ms)
	}
	return fmt.Sprintf("%.1fs", ms/1000)
}

// verdict is the strategy's word, in the colour of good or bad news.
func (p Printer) verdict(s Strategy) string {
	const red, green = "31", "32"
	if s.Correct() {
		return p.paint(green, s.Verdict)
	}
	return p.paint(red, s.Verdict)
}

func (p Printer) paint(colour, s string) string {
	if !p.Color {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

func widest(rendered string) int {
	var n int
	for line := range strings.Lines(rendered) {
		n = max(n, text.StringWidthWithoutEscSequences(strings.TrimRight(line, "\n")))
	}
	return n
}
