// Package faults is the fault suite. A shop of three instances sells while a fault happens, and every promise is
// checked against the answers to the clients.
//
// A history has these steps:
//
//	fresh SKUs -> traffic -> fault -> healed -> each shop sells again -> last answers -> books -> checks
//
// run.go runs a history. faults.go has the faults, controls.go and the patches in controls have the mistakes that the suite
// must catch, report.go has the reports, and failover.go shows what asynchronous replication loses. In the folders, system
// starts shops, servers and the network between them, traffic sends the requests of the clients, history records a run, and
// checks checks the promises.
package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jedib0t/go-pretty/v6/table"

	"example.com/shop/loadtest/faults/checks"
	"example.com/shop/loadtest/faults/history"
	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/stats"
)

// ErrBroken means that a promise was broken, or that a control was not found. The output names it.
var ErrBroken = errors.New("a promise was broken")

// Command is the grammar of `loadtest faults` for kong, and the settings of a run.
type Command struct {
	Names   []string `arg:"" optional:"" help:"Faults, 'all', 'list', 'kill-primary', or 'controls' and names of controls."`
	Times   int      `group:"Histories" default:"3" help:"Histories of each fault (1 to 10000). A control always has up to 200."`
	Seed    uint64   `group:"Histories" default:"1" help:"Seed of the first history; each further history has the next number. The seed decides the requests of the clients, and the place and time of the fault."`
	Servers string   `group:"Histories" enum:"embedded,docker" default:"embedded" help:"embedded: the faults that need no server. docker: all faults, with MySQL and Redis in containers. kill-primary always uses containers."`
	JSON    string   `group:"Output" name:"json" placeholder:"FILE" help:"Also write the report as JSON; '-' for stdout, all other output then goes to stderr. Histories with violations include all requests."`
	HTML    string   `group:"Output" name:"html" placeholder:"FILE" help:"Also write timelines as one HTML file: the first history of each fault, and all histories with violations."`
}

// About stands above the flags in the help.
const About = `Breaks a shop of three instances while clients buy, pay, cancel, let orders expire and repeat requests. Then it checks that no acknowledged order is lost, no unit is sold twice, and no buyer is refused while units are available.

'faults list' lists the faults, the checks and the controls. 'faults controls' proves that the checks find mistakes: each control is a mistake that is built into the shop or its database. 'faults kill-primary' kills the primary of a MySQL group and of a MySQL with an asynchronous replica, in containers, and shows the buyers' receipts beside the rows of the new primary.`

// Footer stands below the flags in the help.
func (Command) Footer() string {
	return `
Examples:
  go run ./loadtest faults list                     the faults, checks and controls
  go run ./loadtest faults                          the faults that need no server
  go run ./loadtest faults --servers docker         all faults
  go run ./loadtest faults shop-killed --times 100 --html report.html
  go run ./loadtest faults primary-killed --servers docker --seed 7 --times 1
  go run ./loadtest faults controls                 does the suite find mistakes that need no server?
  go run ./loadtest faults controls fence-unchecked
  go run ./loadtest faults kill-primary             a group keeps orders that an asynchronous replica loses

Columns: recovery is the time until each of the three shops sold again, after the end of the fault or
after another server took over, whichever took longer. "no sale for" is the longest time without an
acknowledged order, during and after the fault: of a single SKU or shop, where a fault promises that
each of them sells. Both are medians over the histories, with the maximum.

The seed fixes the random choices, but not the timing: after another answer, a client goes on
differently. So a violation may need several histories to appear again.

Exit code: 0 if no promise was broken and every control was found; 1 if not, or if the work could
not be done; 2 if the flags make no sense.
`
}

// Validate returns an error if the flags make no sense. kong calls it.
func (c *Command) Validate() error {
	if c.Times < 1 || c.Times > 10_000 {
		return fmt.Errorf("--times %d: want 1 to 10000", c.Times)
	}
	faults, _, err := c.chosen()
	if err == nil && faults == nil && c.JSON+c.HTML != "" {
		return errors.New("--json and --html report on faults: leave them out")
	}
	return err
}

// chosen returns the named faults or controls: none for list and kill-primary.
func (c *Command) chosen() (faults []fault, controls []control, err error) {
	switch {
	case len(c.Names) == 0, slices.Equal(c.Names, []string{"all"}):
		return slices.DeleteFunc(allFaults(), func(f fault) bool { return f.means == loses || !c.has(f.on) }), nil, nil
	case slices.Equal(c.Names, []string{"list"}), slices.Equal(c.Names, []string{"kill-primary"}):
		return nil, nil, nil
	case c.Names[0] == "controls":
		controls, err = c.controlsNamed(c.Names[1:])
		return nil, controls, err
	}
	for _, name := range c.Names {
		f, ok := faultNamed(name)
		if !ok {
			return nil, nil, fmt.Errorf("%.80q is not a fault: 'faults list' lists the faults", name)
		}
		if !c.has(f.on) {
			return nil, nil, fmt.Errorf("%s needs servers: add --servers docker", name)
		}
		faults = append(faults, f)
	}
	return faults, nil, nil
}

// has reports whether the flags ask for servers of this kind.
func (c *Command) has(kind system.Kind) bool { return kind == system.Embedded || c.Servers == "docker" }

// Run runs the histories and writes the report.
func (c *Command) Run(ctx context.Context, k *kong.Context) error {
	out := k.Stdout
	if c.JSON == "-" {
		out = k.Stderr
	}
	progress := func(line string) { fmt.Fprintln(k.Stderr, line) }
	chosen, controls, err := c.chosen()
	switch {
	case err != nil:
		return err
	case controls != nil:
		return c.findAll(ctx, progress, controls, tries, out)
	case chosen == nil && c.Names[0] == "list":
		return writeList(out)
	case chosen == nil: // kill-primary
		all, err := KillPrimary(ctx, c.Seed, progress)
		if err != nil {
			return err
		}
		return writeFailovers(out, all)
	}
	whole := report{Version: 1, StartedAt: time.Now().UTC()}
	whole.Histories, err = c.runAll(ctx, progress, chosen)
	if len(whole.Histories) > 0 {
		err = errors.Join(err, whole.writeTable(out, c.Times),
			result.Save(c.JSON, k.Stdout, result.JSON(whole)), result.Save(c.HTML, k.Stdout, whole.writeHTML))
	}
	if err == nil && whole.broken() {
		err = ErrBroken
	}
	return err
}

// runAll runs the histories, sorted by servers. With --servers docker, faults that need no server run on MySQL.
func (c *Command) runAll(ctx context.Context, progress func(string), chosen []fault) (all []*history.History, err error) {
	for i, f := range chosen {
		if f.on == system.Embedded && c.Servers == "docker" {
			chosen[i].on = system.MySQL
		}
	}
	slices.SortStableFunc(chosen, func(a, b fault) int { return cmp.Compare(a.on, b.on) })
	r := newRunner(progress)
	defer func() { err = errors.Join(err, r.close()) }()
	began := time.Now()
	for _, f := range chosen {
		for n := range c.Times {
			h, err := r.runHistory(ctx, f, c.Seed+uint64(n))
			if errors.Is(err, system.ErrNoHistory) && os.Getenv("CI") != "true" {
				progress(fmt.Sprintf("%s is left out: %v", f.name, err))
				break
			}
			if h == nil {
				return all, cmp.Or(ctx.Err(), err)
			}
			if len(h.Violations) == 0 && (n > 0 || c.HTML == "") {
				h.Operations, h.Books = nil, history.Books{} // to save memory: there may be thousands of histories
			}
			all = append(all, h)
			progress(fmt.Sprintf("%5.0fs  %d of %d: %s, seed %d: %d orders, %d violations, recovery %v",
				time.Since(began).Seconds(), len(all), len(chosen)*c.Times, f.name, h.Seed, h.Sold, len(h.Violations), h.Recovery.Round(time.Millisecond)))
			if err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

func writeList(out io.Writer) error {
	var faults, promises, mistakes []table.Row
	for _, f := range allFaults() {
		faults = append(faults, table.Row{f.name, f.on, f.about})
	}
	for _, check := range checks.All() {
		promises = append(promises, table.Row{check.Name, check.About})
	}
	for _, control := range allControls() {
		mistakes = append(mistakes, table.Row{control.name, control.on, control.about})
	}
	_, err := io.WriteString(out, stats.Table(table.Row{"fault", "needs", "what happens"}, faults, 1, 0)+
		"\n"+stats.Table(table.Row{"check", "promise"}, promises, 1, 0)+
		"\n"+stats.Table(table.Row{"control", "needs", "mistake"}, mistakes, 1, 0))
	return err
}
