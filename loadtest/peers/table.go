package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"example.com/shop/loadtest/peers/peer"
	"example.com/shop/loadtest/stats"
)

func (r *session) printMachine() {
	m := r.report.Machine
	fmt.Fprintf(r.out, "%s, %d cores, %s, kernel %s, %s; load %s\n", cmp.Or(m.CPU, "unknown CPU"), m.Cores, m.OS, m.Kernel, m.Go, m.Load)
	fmt.Fprintf(r.out, "%s\n", m.Redis)
	for _, p := range r.flags.peers {
		if v := m.Peers[p.Name]; v != "" {
			fmt.Fprintf(r.out, "%s: %s\n", p.Name, v)
		}
	}
	if r.flags.turns == 0 {
		fmt.Fprintf(r.out, "rounds: %d, with %v for each peer\n", r.flags.rounds, r.flags.time)
	}
}

// print writes the case's table.
func (c caseReport) print(out io.Writer, k kind) {
	switch k {
	case throughput:
		c.printTurns(out)
	case wakeUp:
		c.printWakes(out)
	case idling:
		c.printIdle(out)
	}
}

func (c caseReport) printTurns(out io.Writer) {
	raw, fastest := c.rates(peer.Raw), c.rates(c.fastest())
	t := newTable("peer", "turns/s", "to raw", "to fastest", "longest wait", "most/least", "right")
	if len(c.SleepLoop) > 0 {
		t.AppendRow(table.Row{"sleep loop", whole(stats.Median(c.SleepLoop)), ratio(c.SleepLoop, raw), ratio(c.SleepLoop, fastest), "", "", ""})
	}
	for _, p := range c.Peers {
		rates := c.rates(p.Name)
		t.AppendRow(table.Row{p.Name, whole(stats.Median(ended(rates))), ratio(rates, raw), ratio(rates, fastest),
			millis(p.longestWait()), p.leastFair(), p.right()})
	}
	render(out, t)
	if ours := c.rates(peer.Ours); len(c.SleepLoop) > 0 && ours != nil {
		fmt.Fprintf(out, "ours to the sleep loop, which is the ideal: %s\n", ratio(ours, c.SleepLoop))
	}
}

func (c caseReport) printWakes(out io.Writer) {
	t := newTable("peer", "woken", "in round trips", "has the key", "in round trips", "from its return", "ping", "longest", "samples", "right")
	for _, p := range c.Peers {
		pick := func(f func(wake) float64) float64 { return stats.Median(collect(p.Wakes, f)) }
		samples, failed := 0, "yes"
		for _, w := range p.Wakes {
			samples += w.Samples
			if w.Failed != "" {
				failed = w.Failed
			}
		}
		woken, trips := "-", "-"
		if d := pick(func(w wake) float64 { return w.Woken }); d > 0 {
			woken, trips = millis(d), fmt.Sprintf("%.2f", pick(func(w wake) float64 { return w.WokenTrips }))
		}
		t.AppendRow(table.Row{p.Name, woken, trips,
			millis(pick(func(w wake) float64 { return w.FromCall })),
			fmt.Sprintf("%.2f", pick(func(w wake) float64 { return w.RoundTrips })),
			millis(pick(func(w wake) float64 { return w.FromReturn })),
			millis(pick(func(w wake) float64 { return w.Ping })),
			millis(stats.Max(collect(p.Wakes, func(w wake) float64 { return w.Longest }))),
			samples, failed})
	}
	render(out, t)
}

func (c caseReport) printIdle(out io.Writer) {
	t := newTable("peer", "seconds", "waiter sent", "holder sent")
	for _, p := range c.Peers {
		t.AppendRow(table.Row{p.Name, p.Idle.Seconds, cmp.Or(p.Idle.Failed, commands(p.Idle.Waiter)), commands(p.Idle.Holder)})
	}
	render(out, t)
}

// newTable has a line under the header and nothing else; all columns but the
// first and the last are numbers.
func newTable(header ...any) table.Writer {
	t := table.NewWriter()
	s := table.StyleLight
	s.Options = table.Options{SeparateHeader: true}
	s.Format.Header = text.FormatDefault
	s.Box.PaddingLeft, s.Box.PaddingRight = "", "  "
	t.SetStyle(s)
	t.AppendHeader(header)
	var right []table.ColumnConfig
	for column := 2; column < len(header); column++ {
		right = append(right, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	return t
}

func render(out io.Writer, t table.Writer) {
	for line := range strings.Lines(t.Render()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
}

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

// millis shows milliseconds in a handful of characters.
func millis(v float64) string {
	switch {
	case math.Abs(v) < 10:
		return fmt.Sprintf("%.3f ms", v)
	case math.Abs(v) < 9999.5:
		return fmt.Sprintf("%.0f ms", v)
	}
	return fmt.Sprintf("%.1f s", v/1000)
}

func ratio(a, b []float64) string {
	if r := stats.Ratio(a, b); !math.IsNaN(r) {
		return fmt.Sprintf("%.2f", r)
	}
	return "-"
}

func commands(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s x%d", name, counts[name]))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
