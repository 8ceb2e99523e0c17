package compare

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"example.com/shop/loadtest/report"
)

// Print writes the comparison for people.
func (c Comparison) Print(p report.Printer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "before: %s\nafter:  %s\n\n", origin(c.a), origin(c.b))
	if len(c.Differ) > 0 {
		b.WriteString("These two runs cannot be compared by speed:\n")
		for _, d := range c.Differ {
			fmt.Fprintf(&b, "  %s: %s before, %s after\n", d.What, cmp.Or(d.First, "unknown"), cmp.Or(d.Second, "unknown"))
		}
		b.WriteByte('\n')
	}
	if len(c.Strategies) > 0 {
		b.WriteString(c.table(p) + "\n")
	}
	for _, only := range []struct {
		where string
		names []string
	}{{"before", c.OnlyFirst}, {"after", c.OnlySecond}} {
		if len(only.names) > 0 {
			fmt.Fprintf(&b, "\nOnly %s: %s\n", only.where, strings.Join(only.names, ", "))
		}
	}
	if worse := c.Worse(); len(worse) > 0 {
		b.WriteString("\n" + p.Bad("Worse than before: "+strings.Join(worse, ", ")+".") + "\n")
	}
	_, err := fmt.Fprint(p.Out, b.String())
	return err
}

// origin is what a run was made of and when.
func origin(r report.Report) string {
	parts := []string{r.StartedAt.UTC().Format("2006-01-02 15:04 UTC")}
	for _, known := range []string{r.Machine.Commit, r.Machine.Go, r.Run.Target} {
		if known != "" {
			parts = append(parts, known)
		}
	}
	return strings.Join(parts, ", ")
}

func (c Comparison) table(p report.Printer) string {
	t := table.NewWriter()
	t.SetStyle(report.Columns("  "))
	t.AppendHeader(table.Row{"strategy", "", "before", "after", "after/before"})
	for _, pair := range c.Strategies {
		a, b := pair.First, pair.Second
		verdict := p.Good(b.Verdict)
		if !b.Correct() {
			verdict = p.Bad(b.Verdict)
		}
		t.AppendRow(table.Row{a.Name, "verdict", a.Verdict, verdict, ""})
		if len(c.Differ) > 0 {
			continue
		}
		for _, m := range []struct {
			name string
			a, b float64
			show func(float64) string
		}{
			{"orders/s", a.OrdersPerSecond, b.OrdersPerSecond, rate},
			{"refusals/s", a.RefusalsPerSecond, b.RefusalsPerSecond, rate},
			{"p50", a.LatencyMS.P50, b.LatencyMS.P50, report.ShowWait},
			{"p99", a.LatencyMS.P99, b.LatencyMS.P99, report.ShowWait},
		} {
			t.AppendRow(table.Row{"", m.name, m.show(m.a), m.show(m.b), ratio(m.a, m.b)})
		}
	}
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 3, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 4, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 5, Align: text.AlignRight, AlignHeader: text.AlignRight},
	})
	return report.FlushLeft(t.Render(), "  ")
}

func rate(perSecond float64) string { return strconv.FormatFloat(perSecond, 'f', 1, 64) }

// ratio has a dash where there is nothing to divide.
func ratio(a, b float64) string {
	if a == 0 || b == 0 {
		return "-"
	}
	return strconv.FormatFloat(b/a, 'f', 2, 64)
}
