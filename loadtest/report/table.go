package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Width is how many columns of a terminal the output fits.
const Width = 100

// Printer writes a report for people.
type Printer struct {
	Out   io.Writer
	Color bool
}

// Table prints one line per strategy, and below them what the load test cost.
func (p Printer) Table(r Report) error {
	rendered := p.render(r, "  ", Width)
	if widest(rendered) > Width {
		rendered = p.render(r, " ", narrowName)
	}
	if r.Harness != nil {
		says := r.Harness.Says()
		rendered += "\n\n" + Wrap(strings.ToUpper(says[:1])+says[1:]+".", Width)
	}
	_, err := fmt.Fprintln(p.Out, rendered)
	return err
}

// narrowName is how wide a strategy's name may be where the table is too wide.
const narrowName = 13

func (p Printer) render(r Report, gap string, nameWidth int) string {
	t := table.NewWriter()
	t.SetStyle(Columns(gap))
	t.AppendHeader(table.Row{"strategy", "supplied", "orders", "oversold", "undersold",
		"refused", "errors", "orders/s", "p50", "p99", "verdict"})
	for _, s := range r.Strategies {
		t.AppendRow(table.Row{s.Name, s.Supplied, s.Orders, s.Oversold, s.Undersold,
			s.Refused, s.Errors, strconv.FormatFloat(s.OrdersPerSecond, 'f', 0, 64),
			ShowWait(s.LatencyMS.P50), ShowWait(s.LatencyMS.P99), p.verdict(s)})
	}
	right := []table.ColumnConfig{{Number: 1, WidthMax: nameWidth, WidthMaxEnforcer: wrapAtHyphen}}
	for column := 2; column <= 10; column++ {
		right = append(right, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	return FlushLeft(t.Render(), gap)
}

// FlushLeft takes the gap before the first column off a rendered table, in the line
// under the header as well, and blanks off the ends.
func FlushLeft(rendered, gap string) string {
	var lines []string
	for line := range strings.Lines(rendered) {
		lines = append(lines, strings.TrimRight(string([]rune(line)[len(gap):]), " \n"))
	}
	return strings.Join(lines, "\n")
}

// wrapAtHyphen breaks a name that is too long after the last hyphen that fits.
func wrapAtHyphen(name string, most int) string {
	if len(name) <= most {
		return name
	}
	i := strings.LastIndex(name[:most], "-") + 1
	if i == 0 {
		i = most
	}
	return name[:i] + "\n" + wrapAtHyphen(name[i:], most)
}

// Columns is the style of a table with a line under the header and nothing else;
// gap stands before each column.
func Columns(gap string) table.Style {
	s := table.StyleLight
	s.Options = table.Options{SeparateHeader: true}
	s.Format.Header = text.FormatDefault
	s.Box.PaddingLeft, s.Box.PaddingRight = gap, ""
	return s
}

// ShowWait shows milliseconds in at most six characters.
func ShowWait(ms float64) string {
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
	if s.Correct() {
		return p.Good(s.Verdict)
	}
	return p.Bad(s.Verdict)
}

// Good returns s in the colour of good news, if there is colour.
func (p Printer) Good(s string) string { return p.paint(text.FgGreen, s) }

// Bad returns s in the colour of bad news, if there is colour.
func (p Printer) Bad(s string) string { return p.paint(text.FgRed, s) }

// paint does not leave the decision to go-pretty, which asks about stdout.
func (p Printer) paint(colour text.Color, s string) string {
	if !p.Color {
		return s
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, s)
}

func widest(rendered string) int {
	var n int
	for line := range strings.Lines(rendered) {
		n = max(n, text.StringWidthWithoutEscSequences(strings.TrimRight(line, "\n")))
	}
	return n
}
