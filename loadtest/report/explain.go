package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Explain prints, for each strategy, its lesson and what happened in plain
// words, and at the end whether promises were kept.
func (p Printer) Explain(r Report) error {
	indent := 0
	for _, s := range r.Strategies {
		indent = max(indent, len(s.Name)+2)
	}
	var b strings.Builder
	for _, s := range r.Strategies {
		says := slices.Concat([]string{s.Lesson, s.Happened(), s.unanswered(), s.locked()}, bullets(s.Remarks()))
		for i, line := range says {
			if line == "" {
				continue
			}
			name := ""
			if i == 0 {
				name = s.Name
			}
			hang(&b, name, indent, line)
		}
		b.WriteByte('\n')
	}
	for _, n := range r.NotRun {
		indent = max(indent, len(n.Name)+2)
	}
	for i, n := range r.NotRun {
		if i == 0 {
			b.WriteString("Not run:\n")
		}
		hang(&b, n.Name, indent, n.Reason+".")
	}
	if len(r.NotRun) > 0 {
		b.WriteByte('\n')
	}
	b.WriteString(p.promises(r) + "\n")
	_, err := fmt.Fprint(p.Out, b.String())
	return err
}

// hang writes a paragraph that stands indented beside its name.
func hang(b *strings.Builder, name string, indent int, paragraph string) {
	for line := range strings.Lines(Wrap(paragraph, Width-indent)) {
		fmt.Fprintf(b, "%-*s%s\n", indent, name, strings.TrimSuffix(line, "\n"))
		name = ""
	}
}

// Wrap breaks a paragraph at blanks, so that it fits so many columns; the last
// line is not ended.
func Wrap(paragraph string, columns int) string {
	lines := strings.Split(text.WrapSoft(paragraph, columns), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// Happened is the result in one sentence or two.
func (s Strategy) Happened() string {
	units, supplied := humanize.Comma(s.UnitsSold), humanize.Comma(s.Supplied)
	switch s.Verdict {
	case "oversold":
		if len(s.SKUs) > 1 {
			return fmt.Sprintf("Sold %s units of %s, and %s cannot be delivered: each of the %d SKUs counts by itself.",
				units, supplied, humanize.Comma(s.Oversold), len(s.SKUs))
		}
		return fmt.Sprintf("Sold %s units of %s: %s for an order that cannot be delivered.",
			units, supplied, count(s.Oversold, "buyer waits", "buyers wait"))
	case "undersold":
		return fmt.Sprintf("Sold %s units of %s and let %s go without one while units were left.",
			units, supplied, count(s.Refused+s.Errors, "buyer", "buyers"))
	case "inconsistent":
		return fmt.Sprintf("Sold %s units of %s, but the shop's books and what the buyers were told disagree.", units, supplied)
	}
	sentence := fmt.Sprintf("Sold %s units of %s, none twice", units, supplied)
	switch {
	case s.Errors > 0:
		sentence += fmt.Sprintf(", and turned %s away.", count(s.Refused+s.Errors, "buyer", "buyers"))
	case s.Refused > 0:
		sentence += fmt.Sprintf(", and turned the other %s away.", count(s.Refused, "buyer", "buyers"))
	default:
		sentence += ", and turned nobody away."
	}
	if !s.PromisesCorrect {
		sentence += " It does not promise that: more instances or other timing can break it."
	}
	return sentence
}

// unanswered is a sentence on the buyers who do not know where they stand.
func (s Strategy) unanswered() string {
	n := s.Errors - s.Unsent
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s told neither of an order nor that it is sold out.", count(n, "buyer was", "buyers were"))
}

func (s Strategy) locked() string {
	if s.Locks == nil {
		return ""
	}
	return s.Locks.Says()
}

// Remarks are findings and notes, for people. What is wrong inside the books of a
// shop that oversold is the same mistake once more and is left to the JSON.
func (s Strategy) Remarks() []string {
	var lines []string
	if s.PromisesCorrect || s.Verdict == "inconsistent" {
		lines = append(lines, s.Findings...)
	}
	lines = append(lines, s.Notes...)
	if s.Retries > 0 {
		lines = append(lines, "buyers asked again "+count(s.Retries, "time", "times")+", with the same key")
	}
	if s.Replays > 0 {
		lines = append(lines, count(s.Replays, "order was", "orders were")+" sent again with the same key and came out as one each time")
	}
	if s.Cancelled > 0 {
		lines = append(lines, count(s.Cancelled, "order was", "orders were")+" cancelled, and their units for sale again")
	}
	return lines
}

func bullets(lines []string) []string {
	marked := make([]string, len(lines))
	for i, line := range lines {
		marked[i] = "- " + line
	}
	return marked
}

// promises are the last lines, in the colour of good or bad news.
func (p Printer) promises(r Report) string {
	lines, promised := strings.Join(r.Promises(), "\n"), slices.ContainsFunc(r.Strategies, func(s Strategy) bool { return s.PromisesCorrect })
	switch {
	case len(r.Broken()) > 0:
		return p.Bad(lines)
	case promised:
		return p.Good(lines)
	}
	return lines
}

// Promises says which were kept, in one sentence or two: what the exit code says.
func (r Report) Promises() []string {
	var kept, wrong, silent []string
	for _, s := range r.Strategies {
		switch {
		case !s.PromisesCorrect:
		case !s.Correct():
			wrong = append(wrong, s.Name)
		case s.Errors > 0:
			silent = append(silent, fmt.Sprintf("%s (%s)", s.Name, count(s.Errors, "buyer", "buyers")))
		default:
			kept = append(kept, s.Name)
		}
	}
	var lines []string
	if len(wrong) > 0 {
		lines = append(lines, "Promised to be correct and was not: "+strings.Join(wrong, ", ")+".")
	}
	if len(silent) > 0 {
		lines = append(lines, "Promised to be correct, but left buyers without an answer: "+strings.Join(silent, ", ")+".")
	}
	switch {
	case len(lines) > 0:
		return lines
	case len(kept) > 0:
		return []string{"Promised to be correct and was: " + strings.Join(kept, ", ") + "."}
	}
	return []string{"None of these strategies promises to be correct."}
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(n) + " " + many
}
