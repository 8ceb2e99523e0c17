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
	"example.com/shop/loadtest/stats"
)

const compareAbout = `Compares two reports of --json: for each strategy that both have, its verdict, its speed and how long
buyers waited, and the ratio of the second to the first.

Speeds are compared only where both runs asked for the same and ran on the same machine, database
and Redis; the differences are listed, and verdicts are shown all the same.`

// compareCommand prints two saved reports side by side.
type compareCommand struct {
	Before string `arg:"" help:"The report of --json to compare with."`
	After  string `arg:"" help:"The one that is compared."`
}

// Footer stands below the flags in the help.
func (compareCommand) Footer() string {
	return `
Figures are medians over the rounds of --repeat, with the least and the greatest in brackets. Runs
of equal code differ: there is a ratio where the two ranges do not overlap, and elsewhere a ~, which
says nothing. One round has no range. Take five or more: by chance, two ranges of equal code do not
overlap once in 3 times with 2 rounds each, and once in 126 with 5.

A machine that was busy during one of the two runs makes a difference as well. 'loadtest bench
--against' measures two checkouts in the same rounds.

Examples:
  go run ./loadtest --repeat 5 --json before.json     and after.json with the changed code
  go run ./loadtest compare before.json after.json

Exit code: 0 if all of both runs could be compared and no verdict is worse than before, 1 if not,
2 if a file cannot be read or is no report of this version. A ~ does not change it.
`
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
	hang(&b, screenWidth, "before:", 8, origin(before))
	hang(&b, screenWidth, "after:", 8, origin(after))
	b.WriteByte('\n')
	differ := differences(before, after)
	columns := result.Columns(result.Compare)
	if len(differ) > 0 {
		b.WriteString("These two runs cannot be compared by speed:\n" + strings.Join(differ, "") + "\n")
		columns = nil
	}
	var rows []table.Row
	ok := len(differ) == 0
	for _, x := range before.Strategies {
		y, found := find(after, x.Name)
		if !found {
			rows = append(rows, table.Row{x.Name, s.verdict(x), "-", ""})
			ok = false
			continue
		}
		note := ""
		if y.Verdict.Compare(x.Verdict) > 0 {
			ok, note = false, "worse"
		}
		rows = append(rows, table.Row{x.Name, s.verdict(x), s.verdict(y), note})
		for _, c := range columns {
			rows = append(rows, table.Row{"  " + c.Name, figure(c, x), figure(c, y), ratio(c, x, y)})
		}
	}
	for _, y := range after.Strategies {
		if _, found := find(before, y.Name); !found {
			rows = append(rows, table.Row{y.Name, "-", s.verdict(y), ""})
			ok = false
		}
	}
	b.WriteString(stats.Fold(screenWidth, table.Row{"strategy", "before", "after", "ratio"}, rows, 2, 4))
	switch {
	case columns == nil:
	case before.Run.Rounds > 1 && after.Run.Rounds > 1:
		b.WriteString("~ says nothing: the ranges of the two runs overlap.\n")
	default:
		b.WriteString("Nothing can be said about speed: one round does not show how far equal runs\ndiffer. Make both reports with --repeat 5.\n")
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
	if r.Run.Rounds > 1 {
		parts = append(parts, fmt.Sprint(r.Run.Rounds, " rounds"))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// figure shows a median and, of several rounds, its range.
func figure(c result.Column, s result.Strategy) string {
	spread := c.Spread(s)
	text := c.Show(spread.Median)
	if len(s.Spread) > 0 {
		text += fmt.Sprintf(" (%s-%s)", c.Show(spread.Least), c.Show(spread.Greatest))
	}
	return text
}

// ratio is that of the medians, if the ranges do not overlap. It has a dash where there is nothing to divide.
func ratio(c result.Column, x, y result.Strategy) string {
	before, after := c.Spread(x), c.Spread(y)
	switch {
	case before.Median == 0 || after.Median == 0:
		return "-"
	case len(x.Spread) == 0 || len(y.Spread) == 0 || before.Overlaps(after):
		return "~"
	}
	return strconv.FormatFloat(after.Median/before.Median, 'f', 2, 64)
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
			{"duration in s", run.Seconds}, {"SKUs", run.SKUs}, {"skew", run.Skew}, {"lines", run.Lines},
			{"all at the same time", run.Together},
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
