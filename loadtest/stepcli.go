package main

import (
	"fmt"
	"maps"
	"slices"

	"example.com/shop/loadtest/cli"
)

// all is the name of everything there is.
const all = "all"

const (
	maxTimes    = 1000
	maxParallel = 32
)

// stepFlags are what the user chose of step.
type stepFlags struct {
	Names []string `arg:"" optional:"" name:"name" help:"A strategy, a scenario, or 'all'. Without one and without flags, they are listed."`

	Times    int    `default:"1" help:"Play each this many times (1 to 1000), and demand the same outcome each time."`
	Parallel int    `default:"10" help:"Plays at a time, each in two shops of its own (1 to 32)."`
	JSON     string `name:"json" placeholder:"FILE" help:"Write the plays with all their events as JSON too; '-' for stdout, everything else then goes to stderr."`

	places
}

const stepDescription = `Plays two buyers against each other, step by step, the same way every time.

Buyer A asks instance 1 of the shop, a process of its own; B asks instance 2. Requests are stopped ahead of a command or a
COMMIT, the process of A is paused or killed, all by a schedule. Then it shows what each of them did and when, where it
went wrong, why, and what a right strategy does in the same schedule.`

const stepExamples = `
Examples:
  go run ./loadtest step                    the scenarios, and who fails which
  go run ./loadtest step none               the lost update, line by line, then its remedy
  go run ./loadtest step get-then-del       a lock that is given back too late
  go run ./loadtest step crash              who fails when a process dies
  go run ./loadtest step redis              a right one in all five scenarios
  go run ./loadtest step all --times 20     everything, 20 times: the same outcome 20 times
  go run ./loadtest step all --servers docker

A timeline reads from top to bottom; the first column is milliseconds since the play began. What A's request did is on the
left, B's on the right: HTTP, Redis commands and SQL with their answers, and the steps of the order. A line of dashes is
what the schedule does: stop, pause, kill, go on.

Exit code: 0 if every wrong strategy failed in its scenario and every right one passed in all, each time; 1 if not, or a
play could not be held; 2 if the flags make no sense.
`

func parseStep(c call) (stepFlags, error) {
	var f stepFlags
	program := cli.Program{Name: "loadtest step", About: stepDescription, Lesson: stepExamples}
	if err := program.Parse(&f, c.args, c.stdout, c.stderr); err != nil {
		return f, err
	}
	if len(f.Names) == 0 && len(c.args) > 0 {
		return f, fmt.Errorf("%w: name what to play: a strategy, a scenario, or 'all'; `go run ./loadtest step` lists them", cli.ErrUsage)
	}
	return f, f.check()
}

// check returns a cli.ErrUsage for the first flag that asks for what cannot be.
func (f stepFlags) check() error {
	problem := ""
	switch {
	case f.Times < 1 || f.Times > maxTimes:
		problem = fmt.Sprintf("--times %d: want 1 to %d", f.Times, maxTimes)
	case f.Parallel < 1 || f.Parallel > maxParallel:
		problem = fmt.Sprintf("--parallel %d: want 1 to %d", f.Parallel, maxParallel)
	case slices.Contains(f.Names, all) && len(f.Names) > 1:
		problem = "'all' stands alone"
	case f.conflict() != "":
		problem = f.conflict()
	}
	if problem != "" {
		return fmt.Errorf("%w: %s", cli.ErrUsage, problem)
	}
	if err := f.checkServers(); err != nil {
		return err
	}
	return checkJSON(f.JSON)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
