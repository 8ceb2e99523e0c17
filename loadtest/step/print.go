package step

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"example.com/shop/internal/lab"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/stats"
)

// whole writes the outcome of a schedule, with its timeline and what it means, in at most 100 columns for two buyers.
func (o Output) whole(p Position) {
	fmt.Fprintln(o.Out, o.bold(lang.Text(o.Lang, "%s: %s", p.Schedule, lang.Text(o.Lang, p.verdict()))))
	o.timeline(p)
	fmt.Fprintln(o.Out)
	o.paragraph(p.outcome(o.Lang))
	o.paragraph(lang.Text(o.Lang, p.Why))
	if p.Remedy != "" {
		o.paragraph(lang.Text(o.Lang, "Remedy: ") + lang.Text(o.Lang, p.Remedy))
	}
	fmt.Fprintln(o.Out)
}

func (p Position) verdict() string {
	if p.Passed {
		return "passed"
	}
	return "failed"
}

func (o Output) paragraph(text string) { lang.Hang(o.Out, 96, "", 2, text) }

func (o Output) table(lessons []played) {
	var rows []table.Row
	for _, l := range lessons {
		wrong, remedy := lang.Text(o.Lang, l.wrong.verdict()), lang.Text(o.Lang, l.remedy.verdict())
		rows = append(rows, table.Row{l.Name, l.Schedule, o.red(wrong), l.Remedy, remedy})
	}
	fmt.Fprintln(o.Out, stats.Table(o.header("lesson", "schedule", "result", "remedy", "in the same schedule"), rows, 1, 0))
}

func (o Output) header(names ...string) (header table.Row) {
	for _, name := range names {
		header = append(header, lang.Text(o.Lang, name))
	}
	return header
}

// Columns of a timeline, 100 in all.
const (
	timeWidth  = 8
	cellsWidth = 90 // of all buyers
	gap        = "  "
)

// timeline writes what happened but for the noise, a column for each buyer, in order of time, and where it went wrong.
func (o Output) timeline(p Position) {
	width := cellsWidth/len(p.Buyers) - len(gap)/2
	head := fmt.Sprintf("%*s", timeWidth, "ms")
	for _, b := range p.Buyers {
		head += gap + text.Pad(lang.Text(o.Lang, "%s, instance %d", b.Name, b.Instance), width, ' ')
	}
	fmt.Fprintln(o.Out, strings.TrimRight(head, " "))
	for i, e := range p.Events {
		if e.Noise {
			continue
		}
		line := o.lines(e, width)
		switch {
		case i == p.Wrong:
			line = o.red(line + "\n" + column(e.Actor, "^-- "+lang.Text(o.Lang, "here it goes wrong"), width))
		case e.Kind == Schedule:
			line = o.dim(line)
		}
		fmt.Fprintln(o.Out, line)
	}
}

func (o Output) lines(e Event, width int) string {
	ms := fmt.Sprintf("%*.1f", timeWidth, float64(e.At.Microseconds())/1000)
	if e.Kind == Schedule {
		what := lang.Text(o.Lang, e.Text)
		if e.Text != lab.RunsOut { // the buyer whose recording has it does not matter
			what = lang.Text(o.Lang, "%s: %s", e.Actor, what)
		}
		rule := "-- " + what + " "
		return ms + gap + rule + strings.Repeat("-", max(0, cellsWidth-text.StringWidth(rule)))
	}
	cell := e.Text
	switch e.Kind {
	case lab.KindStep:
		cell = lang.Text(o.Lang, strings.ReplaceAll(cell, "-", " "))
	case HTTP:
		cell = lang.Text(o.Lang, cell)
	}
	if e.Answer != "" && (e.Kind != lab.KindSQL || e.Answer != "OK") {
		cell += " -> " + lang.Text(o.Lang, e.Answer)
	}
	const indent = "  " // of all lines but the first
	cell = strings.NewReplacer(", ", ", ", ",", ", ").Replace(cell)
	all := lang.Wrap(cell, width)[:1]
	if rest := strings.TrimSpace(cell[len(all[0]):]); rest != "" {
		all = append(all, lang.Wrap(rest, width-len(indent))...)
	}
	for i, line := range all {
		if i > 0 {
			line = indent + line
		}
		all[i] = column(e.Actor, text.Snip(line, width, "…"), width)
	}
	all[0] = ms + all[0][timeWidth:]
	return strings.Join(all, "\n")
}

// column puts text where the buyer's are.
func column(actor, text string, width int) string {
	left := strings.Index(buyerNames, actor) * (width + len(gap))
	return strings.Repeat(" ", timeWidth+len(gap)+left) + text
}

func (o Output) red(text string) string  { return o.paint("31;1", text) }
func (o Output) dim(text string) string  { return o.paint("2", text) }
func (o Output) bold(text string) string { return o.paint("1", text) }

func (o Output) paint(code, text string) string {
	if !o.Colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
