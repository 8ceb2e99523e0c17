package main

import (
	"context"
	"fmt"

	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/compare"
	"example.com/shop/loadtest/report"
)

const comparing = `Compares two reports of --json: for each strategy that both have, its verdict, orders per second,
refusals per second and how long buyers waited, and the ratio of the second to the first.

Speeds are compared only where both runs asked for the same and ran on the same machine, database
and Redis; what differs is said, and verdicts are shown all the same. One run of each says little
about a few percent: runs differ by that from one to the next.`

const comparingEnd = `
Exit code: 0 if all of both runs could be compared and no verdict is worse than before, 1 if not,
2 if a file cannot be read or is no report of this version.
`

// files are the arguments of compare.
type files struct {
	Before string `arg:"" help:"The report of --json to compare with."`
	After  string `arg:"" help:"The one that is compared."`
}

// compareRuns prints two saved reports side by side.
func compareRuns(_ context.Context, c call) error {
	var f files
	program := cli.Program{Name: "loadtest compare", About: comparing, Lesson: comparingEnd}
	if err := program.Parse(&f, c.args, c.stdout, c.stderr); err != nil {
		return err
	}
	before, err := compare.Read(f.Before)
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	after, err := compare.Read(f.After)
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	screen := newScreen(c.getenv, c.stdout, c.stderr, "")
	compared := compare.Of(before, after)
	if err := compared.Print(report.Printer{Out: screen.out, Color: screen.colour}); err != nil {
		return err
	}
	if !compared.Whole() || len(compared.Worse()) > 0 {
		return errBroken
	}
	return nil
}
