package step

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"example.com/shop/loadtest/shopclient"
)

// whole writes a play with its timeline and what it means, in at most 100 columns.
func (o Output) whole(played Play) {
	fmt.Fprintln(o.Out, o.bold(fmt.Sprintf("%s in %s: %s", played.Strategy, played.Scenario, played.word())))
	in, _ := scenario(played.Scenario)
	o.paragraph(in.Story)
	fmt.Fprintln(o.Out)
	o.timeline(played)
	fmt.Fprintln(o.Out)
	o.meaning(played)
	fmt.Fprintln(o.Out)
}

// mistakes writes what came of each wrong strategy in its scenario, and what a right one made of the same schedule.
func (o Output) mistakes(held []*series) {
	for _, s := range held {
		mistake, _ := MistakeOf(s.strategy.Name)
		if mistake.Scenario != s.in.Name {
			continue
		}
		n := s.times
		if s.unexpected > 0 {
			n = s.unexpected
		}
		title := fmt.Sprintf("%s in %s: %s", s.strategy.Name, s.in.Name, s.shown.word())
		if s.times > 1 {
			title += fmt.Sprintf(", %d of %d times", n, s.times)
		}
		fmt.Fprintln(o.Out, o.bold(title))
		o.meaning(s.shown)
		for _, r := range held {
			if r.strategy.Name == mistake.By && r.in.Name == s.in.Name {
				o.paragraph(fmt.Sprintf("%s in the same schedule: %s", r.strategy.Name, r.shown.Outcome))
			}
		}
		fmt.Fprintln(o.Out)
	}
}

// word is what came of a play.
func (p Play) word() string {
	switch {
	case p.Error != "":
		return "not played"
	case p.Passed:
		return "passed"
	}
	return "failed"
}

func (o Output) meaning(played Play) {
	o.paragraph(played.Outcome)
	o.paragraph(played.Why)
	if played.Remedy != "" {
		o.paragraph("Remedy: " + played.Remedy)
	}
	if played.Error != "" {
		fmt.Fprintf(o.Out, "  %s\n", strings.ReplaceAll(strings.TrimSpace(played.Error), "\n", "\n  "))
	}
}

func (o Output) paragraph(text string) {
	for _, line := range fold(text, 94, "") {
		fmt.Fprintf(o.Out, "  %s\n", line)
	}
}

// table writes a row for each strategy that was played and a column for each scenario.
func (o Output) table(strategies []shopclient.Strategy, plays []Play) {
	cells := map[[2]string]string{}
	for _, played := range plays {
		cells[[2]string{played.Strategy, played.Scenario}] = o.mark(played)
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"strategy"}
	for _, in := range Scenarios() {
		header = append(header, in.Name)
	}
	t.AppendHeader(header)
	for i, strategy := range strategies {
		if !strategy.Available {
			continue
		}
		if i > 0 && strategy.PromisesCorrect != strategies[i-1].PromisesCorrect {
			t.AppendSeparator()
		}
		row := table.Row{strategy.Name}
		for _, in := range Scenarios() {
			row = append(row, cmp.Or(cells[[2]string{strategy.Name, in.Name}], "-"))
		}
		t.AppendRow(row)
	}
	fmt.Fprintln(o.Out, t.Render())
	for _, line := range fold("FAILED is the mistake that a wrong strategy is known for; failed is another mistake, which may end either way; - does not apply.", 96, "") {
		fmt.Fprintln(o.Out, line)
	}
	for _, strategy := range strategies {
		if !strategy.Available {
			fmt.Fprintf(o.Out, "not played: %s: %s\n", strategy.Name, strategy.Reason)
		}
	}
	fmt.Fprintln(o.Out)
}

func (o Output) mark(played Play) string {
	switch {
	case !played.Expected:
		return o.red(strings.ToUpper(played.word()) + " !")
	case fails(played.Strategy, played.Scenario):
		return o.red("FAILED")
	}
	return played.word()
}

// Columns of a timeline, 100 in all.
const (
	timeWidth = 8
	cellWidth = 44
	gap       = "  "
)

// timeline writes what happened, A on the left and B on the right, in order of time, and where it went wrong.
func (o Output) timeline(played Play) {
	fmt.Fprintf(o.Out, "%*s%s%-*s%s%s\n", timeWidth, "ms", gap, cellWidth, "A, instance 1", gap, "B, instance 2")
	for i, e := range played.Events {
		line := o.lines(e)
		if i == played.Wrong {
			line = o.red(line + "\n" + column(e.Actor, "^-- here it goes wrong"))
		}
		fmt.Fprintln(o.Out, line)
	}
}

func (o Output) lines(e Event) string {
	ms := fmt.Sprintf("%*.1f", timeWidth, float64(e.At.Microseconds())/1000)
	if e.Kind == Schedule {
		rule := fmt.Sprintf("-- %s: %s ", e.Actor, e.Text)
		rule += strings.Repeat("-", max(0, 2*cellWidth+len(gap)-utf8.RuneCountInString(rule)))
		return o.dim(ms + gap + rule)
	}
	cell := e.Text
	if e.Kind == Step {
		cell = strings.ReplaceAll(cell, "-", " ")
	}
	if e.Answer != "" && (e.Kind != SQL || e.Answer != "OK") {
		cell += " -> " + e.Answer
	}
	lines := fold(strings.ReplaceAll(cell, ",", ", "), cellWidth, "  ")
	for i, line := range lines {
		lines[i] = column(e.Actor, line)
	}
	lines[0] = ms + lines[0][timeWidth:]
	return strings.Join(lines, "\n")
}

// column puts text where the buyer's are.
func column(actor, text string) string {
	left := strings.Repeat(" ", timeWidth) + gap
	if actor == B {
		left += strings.Repeat(" ", cellWidth) + gap
	}
	return left + text
}

// fold breaks text between words into lines of at most width, those after the first indented. Longer words are cut.
func fold(text string, width int, indent string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if r := []rune(word); len(r) > width-len(indent) {
			word = string(r[:width-len(indent)-1]) + "…"
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
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
