package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"example.com/shop/loadtest/result"
)

const compareAbout = `Compares two reports of --json: for each strategy that both have, its verdict, its speed and how long
buyers waited, and the ratio of the second to the first.

Speeds are compared only where both runs asked for the same and ran on the same machine, database
and Redis; the differences are listed, and verdicts are shown all the same.`

// noise is up to which ratio two runs of equal code may differ.
const noise = 1.5

// compareCommand prints two saved reports side by side.
type compareCommand struct {
	Before string `arg:"" help:"The report of --json to compare with."`
	After  string `arg:"" help:"The one that is compared."`
}

// Footer stands below the flags in the help.
func (compareCommand) Footer() string {
	return fmt.Sprintf(`
Runs of equal code differ: a ratio between 1/%[1]v and %[1]v is marked with ~ and says nothing.

Exit code: 0 if all of both runs could be compared and no verdict is worse than before, 1 if not,
2 if a file cannot be read or is no report of this version.
`, noise)
}

// Run prints the comparison.
func (c *compareCommand) Run(e environment) error {
	before, errBefore := readReport(c.Before)
	after, errAfter := readReport(c.After)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return newScreen(e, "").compare(before, after)
}

func readReport(file string) (result.Report, error) {
	saved, err := os.ReadFile(file) //nolint:gosec // the user names it
	if err != nil {
		return result.Report{}, err
	}
	r, err := result.Decode(saved)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return r, err
}

// errWorse means that not all could be compared, or that a verdict is worse.
var errWorse = errors.New("not all of both runs could be compared, or a verdict is worse than before")

// compare returns errWorse unless all of both runs could be compared and no verdict is worse.
func (s screen) compare(before, after result.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "before: %s\nafter:  %s\n\n", origin(before), origin(after))
	differ := differences(before, after)
	columns := result.Columns(result.Compare)
	if len(differ) > 0 {
		b.WriteString("These two runs cannot be compared by speed:\n" + strings.Join(differ, "") + "\n")
		columns = nil
	}
	t := newTable(table.Row{"strategy", "", "before", "after", "after/before"})
	ok := len(differ) == 0
	for _, x := range before.Strategies {
		y, found := find(after, x.Name)
		if !found {
			t.AppendRow(table.Row{x.Name, "verdict", x.Verdict, "-", ""})
			ok = false
			continue
		}
		note := ""
		if y.Verdict.WorseThan(x.Verdict) {
			ok, note = false, "worse"
		}
		t.AppendRow(table.Row{x.Name, "verdict", x.Verdict, s.verdict(y), note})
		for _, c := range columns {
			t.AppendRow(table.Row{"", c.Name, c.Show(x), c.Show(y), ratio(c.Number(x), c.Number(y))})
		}
	}
	for _, y := range after.Strategies {
		if _, found := find(before, y.Name); !found {
			t.AppendRow(table.Row{y.Name, "verdict", "-", s.verdict(y), ""})
			ok = false
		}
	}
	b.WriteString(rendered(t, 3, 5))
	if columns != nil {
		b.WriteString("~ says nothing: runs of equal code differ by as much.\n")
	}
	if _, err := fmt.Fprint(s.out, b.String()); err != nil {
		return err
	}
	if !ok {
		return errWorse
	}
	return nil
}

func find(in result.Report, name string) (s result.Strategy, found bool) {
	i := slices.IndexFunc(in.Strategies, func(s result.Strategy) bool { return s.Name == name })
	if i < 0 {
		return s, false
	}
	return in.Strategies[i], true
}

// origin is which program made a run, and when.
func origin(r result.Report) string {
	parts := []string{r.StartedAt.UTC().Format("2006-01-02 15:04 UTC"), r.Machine.Commit, r.Machine.Go, r.Run.Target}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// ratio has a dash where there is nothing to divide.
func ratio(before, after float64) string {
	if before == 0 || after == 0 {
		return "-"
	}
	shown := strconv.FormatFloat(after/before, 'f', 2, 64)
	if r := after / before; r < noise && r > 1/noise {
		return "~ " + shown
	}
	return shown
}

// differences are lines on what has to be the same for speeds to be compared, and is not. The commit and the Go version
// may differ: they are what runs are compared for.
func differences(before, after result.Report) []string {
	type fact struct {
		name  string
		value any
	}
	facts := func(r result.Report) []fact {
		run, m := r.Run, r.Machine
		return []fact{
			{"buyers", run.Buyers}, {"stock", run.Stock}, {"shop instances", run.Instances}, {"think time in ms", run.ThinkMS},
			{"rate", run.Rate}, {"duration in s", run.Seconds}, {"requests", run.Requests}, {"SKUs", max(1, run.SKUs)}, {"skew", run.Skew},
			{"lines", max(1, run.Lines)}, {"cancelled share", run.Cancel}, {"repeated share", run.Retry}, {"all at the same time", run.Together},
			{"operating system", m.OS + "/" + m.Arch}, {"CPUs", m.CPUs}, {"CPU", m.CPUModel},
			{"database", cmp.Or(m.DatabaseVersion, m.Database)}, {"Redis", cmp.Or(m.RedisVersion, m.Redis)},
		}
	}
	var differ []string
	other := facts(after)
	for i, f := range facts(before) {
		if f.value != other[i].value {
			differ = append(differ, fmt.Sprintf("  %s: %v before, %v after\n", f.name, f.value, other[i].value))
		}
	}
	return differ
}
