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
		says := slices.Concat([]string{s.Lesson, happened(s), unanswered(s)}, remarks(s))
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
	b.WriteString(p.promises(r) + "\n")
	_, err := fmt.Fprint(p.Out, b.String())
	return err
}

// hang writes a paragraph that stands indented beside its name.
func hang(b *strings.Builder, name string, indent int, paragraph string) {
	for line := range strings.Lines(text.WrapSoft(paragraph, width-indent)) {
		fmt.Fprintf(b, "%-*s%s\n", indent, name, strings.TrimRight(line, " \n"))
		name = ""
	}
}

// happened is the result in one sentence or two.
func happened(s Strategy) string {
	units, supplied := humanize.Comma(s.UnitsSold), humanize.Comma(s.Supplied)
	switch s.Verdict {
	case "oversold":
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
func unanswered(s Strategy) string {
	if s.Errors == 0 {
		return ""
	}
	return fmt.Sprintf("%s told neither of an order nor that it is sold out.", count(s.Errors, "buyer was", "buyers were"))
}

// remarks are what the table does not show. What is wrong inside the books of a
// shop that oversold is the same mistake once more and is left to the JSON.
func remarks(s Strategy) []string {
	var lines []string
	if s.PromisesCorrect || s.Verdict == "inconsistent" {
		for _, finding := range s.Findings {
			lines = append(lines, "- "+finding)
		}
	}
	for _, note := range s.Notes {
		lines = append(lines, "- "+note)
	}
	if s.Retries > 0 {
		lines = append(lines, "- buyers asked again "+count(s.Retries, "time", "times")+", with the same key")
	}
	return lines
}

// promises is the last line: it says what the exit code says.
func (p Printer) promises(r Report) string {
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
	var broken []string
	if len(wrong) > 0 {
		broken = append(broken, "Promised to be correct and was not: "+strings.Join(wrong, ", ")+".")
	}
	if len(silent) > 0 {
		broken = append(broken, "Promised to be correct, but left buyers without an answer: "+strings.Join(silent, ", ")+".")
	}
	switch {
	case len(broken) > 0:
		return p.paint("31", strings.Join(broken, "\n"))
	case len(kept) > 0:
		return p.paint("32", "Promised to be correct and was: "+strings.Join(kept, ", ")+".")
	}
	return "None of these strategies promises to be correct."
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(n) + " " + many
}
