package steps

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Word is what came of a play, in a word.
func (p Play) Word() string {
	if p.Passed {
		return "passed"
	}
	return "failed"
}

// Whole writes a play with its timeline and what it means.
func (p Printer) Whole(played Play) error {
	fmt.Fprintf(p.Out, "%s\n", p.bold(fmt.Sprintf("%s in %s: %s", played.Strategy, played.Scenario, played.Word())))
	fmt.Fprint(p.Out, wrap("  ", story(played.Scenario)), "\n")
	if err := p.Timeline(played); err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "\n%s%s", wrap("  ", played.Outcome), wrap("  ", played.Why))
	if played.Remedy != "" {
		fmt.Fprint(p.Out, wrap("  ", "Remedy: "+played.Remedy))
	}
	_, err := fmt.Fprintln(p.Out)
	return err
}

// Short writes what came of a wrong strategy in its scenario, and what a right one
// made of the same schedule. Of times plays, unlike ones passed, as failed did then.
func (p Printer) Short(failed, remedy Play, times, unlike int) error {
	how := fmt.Sprintf("fails in %s, %s", failed.Scenario, often(times, times))
	if failed.Passed {
		how = fmt.Sprintf("should fail in %s and did not, %s", failed.Scenario, often(unlike, times))
	}
	fmt.Fprintf(p.Out, "%s\n%s%s", p.bold(failed.Strategy+" "+how),
		wrap("  ", failed.Outcome), wrap("  ", failed.Why))
	if failed.Remedy != "" {
		fmt.Fprint(p.Out, wrap("  ", "Remedy: "+failed.Remedy))
	}
	_, err := fmt.Fprintf(p.Out, "%s\n", wrap("  ", fmt.Sprintf("%s in the same schedule: %s", remedy.Strategy, remedy.Outcome)))
	return err
}

func often(n, of int) string {
	switch {
	case of == 1:
		return "once"
	case n == 1:
		return fmt.Sprintf("1 time of %d", of)
	}
	return fmt.Sprintf("%d times of %d", n, of)
}

func story(scenario string) string {
	in, _ := find(scenario)
	return in.Story
}

// Table writes a row for each strategy and a column for each scenario.
func (p Printer) Table(strategies []Strategy, plays []Play) error {
	cells := map[[2]string]Play{}
	for _, played := range plays {
		cells[[2]string{played.Strategy, played.Scenario}] = played
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"strategy"}
	for _, in := range Scenarios() {
		header = append(header, in.Name)
	}
	t.AppendHeader(header)
	for i, how := range strategies {
		if how.Missing != "" {
			continue
		}
		if i > 0 && how.Promises != strategies[i-1].Promises {
			t.AppendSeparator()
		}
		row := table.Row{how.Name}
		for _, in := range Scenarios() {
			row = append(row, p.mark(cells, how, in))
		}
		t.AppendRow(row)
	}
	_, err := io.WriteString(p.Out, t.Render()+"\n")
	return err
}

func (p Printer) mark(cells map[[2]string]Play, how Strategy, in Scenario) string {
	played, there := cells[[2]string{how.Name, in.Name}]
	switch {
	case !there:
		return "-"
	case !played.Expected:
		return p.red(strings.ToUpper(played.Word()) + " !")
	case !played.Passed && Failures()[how.Name] == in.Name:
		return p.red("FAILED")
	case played.Passed:
		return "passed"
	}
	return "failed"
}

// Legend explains the table.
func (p Printer) Legend(strategies []Strategy) error {
	fmt.Fprint(p.Out, wrap("", "FAILED is the mistake that a wrong strategy is known for, failed another one, which may end either way; - does not apply."))
	for _, how := range strategies {
		if how.Missing != "" {
			fmt.Fprintf(p.Out, "not played: %s: %s\n", how.Name, how.Missing)
		}
	}
	_, err := fmt.Fprintln(p.Out)
	return err
}
