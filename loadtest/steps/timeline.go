package steps

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Columns of a timeline, 100 in all.
const (
	wideTime = 8
	wideCell = 44
	between  = "  "
)

// Printer writes plays for people.
type Printer struct {
	Out    io.Writer
	Colour bool
}

// Timeline writes what happened, A on the left and B on the right, a line each in
// order of time, and where it went wrong.
func (p Printer) Timeline(played Play) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%*s%s%s%s%s\n", wideTime, "ms", between, pad("A, instance 1"), between, "B, instance 2")
	for i, e := range played.Events {
		line := p.lines(e)
		if i == played.Wrong {
			line = p.red(line + "\n" + column(e.Actor, "^-- here it goes wrong"))
		}
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(p.Out, b.String())
	return err
}

func (p Printer) lines(e Event) string {
	ms := fmt.Sprintf("%*.1f", wideTime, float64(e.At.Microseconds())/1000)
	if e.Kind == Schedule {
		rule := fmt.Sprintf("-- %s: %s ", e.Actor, e.Text)
		rule += strings.Repeat("-", max(0, 2*wideCell+len(between)-utf8.RuneCountInString(rule)))
		return p.dim(ms + between + rule)
	}
	var lines []string
	for _, line := range broken(cell(e)) {
		lines = append(lines, column(e.Actor, line))
	}
	lines[0] = ms + lines[0][wideTime:]
	return strings.Join(lines, "\n")
}

// column puts text where the buyer's are.
func column(actor, text string) string {
	left := strings.Repeat(" ", wideTime) + between
	if actor == B {
		left += strings.Repeat(" ", wideCell) + between
	}
	return left + text
}

// cell is an event with its answer.
func cell(e Event) string {
	text := e.Text
	if e.Kind == Step {
		text = strings.ReplaceAll(text, "-", " ")
	}
	if e.Answer == "" || e.Kind == SQL && e.Answer == "OK" {
		return text
	}
	return text + " -> " + e.Answer
}

// broken breaks the text of a cell into lines, those after the first indented.
func broken(text string) []string {
	const indent = "  "
	var lines []string
	line := ""
	for _, word := range strings.Fields(strings.ReplaceAll(text, ",", ", ")) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > wideCell:
			lines = append(lines, cut(line, wideCell))
			line = indent + word
		default:
			line += " " + word
		}
	}
	return append(lines, cut(line, wideCell))
}

func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

func pad(text string) string {
	return text + strings.Repeat(" ", max(0, wideCell-utf8.RuneCountInString(text)))
}

func (p Printer) red(text string) string  { return p.in("31;1", text) }
func (p Printer) dim(text string) string  { return p.in("2", text) }
func (p Printer) bold(text string) string { return p.in("1", text) }

func (p Printer) in(code, text string) string {
	if !p.Colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// wrap breaks a paragraph into lines of at most 96 columns, each after indent.
func wrap(indent, text string) string {
	const most = 96
	var b strings.Builder
	used := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case used == 0:
			b.WriteString(indent)
			used = len(indent)
		case used+1+n > most:
			b.WriteString("\n" + indent)
			used = len(indent)
		default:
			b.WriteString(" ")
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String() + "\n"
}
