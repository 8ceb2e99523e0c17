package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/steps"
)

// stepper is a run of step.
type stepper struct {
	stepFlags
	call
	screen  screen
	printer steps.Printer
	player  *steps.Player
}

// step plays scenarios with two buyers.
func step(ctx context.Context, c call) (err error) {
	f, err := parseStep(c)
	if err != nil {
		return err
	}
	s := stepper{stepFlags: f, call: c, screen: newScreen(c.getenv, c.stdout, c.stderr, f.JSON)}
	s.printer = steps.Printer{Out: s.screen.out, Colour: s.screen.colour}
	if len(f.Names) == 0 {
		return s.list()
	}
	stop, err := s.start(ctx, s.screen.tell)
	if err != nil {
		return err
	}
	defer func() { err = cleanup.Join(err, stop()) }()
	if s.player, err = steps.Open(ctx, steps.Options{Instances: s.shops(0, newShopLog(c.stderr)), Pairs: f.Parallel}); err != nil {
		return err
	}
	defer func() { err = cleanup.Join(err, s.player.Close(context.WithoutCancel(ctx))) }()
	if slices.Contains(f.Names, all) {
		return s.all(ctx)
	}
	return s.some(ctx)
}

// all plays every strategy in every scenario.
func (s stepper) all(ctx context.Context) error {
	wishes, began := s.player.Wishes(s.Times), time.Now()
	total, done, unlike := 0, 0, 0
	unlikeIn := map[[2]string]int{} // by strategy and scenario
	for _, w := range wishes {
		total += w.Times
	}
	s.screen.tell(fmt.Sprintf("%d plays, %d at a time", total, s.Parallel))
	plays, err := s.player.Series(ctx, wishes, func(p steps.Play) {
		if done++; !p.Expected {
			unlike++
			unlikeIn[[2]string{p.Strategy, p.Scenario}]++
		}
		if done%50 == 0 {
			s.screen.tell(fmt.Sprintf("%d of %d plays", done, total))
		}
	})
	if err != nil {
		return err
	}
	find := func(strategy, scenario string) steps.Play {
		return plays[slices.IndexFunc(wishes, func(w steps.Wish) bool { return w.Strategy == strategy && w.Scenario == scenario })]
	}
	for _, how := range s.player.Strategies() {
		if scenario, wrong := steps.Failures()[how.Name]; wrong && how.Missing == "" {
			failed := find(how.Name, scenario)
			remedy := steps.RemedyFor(failed)
			if err := s.printer.Short(failed, find(remedy.Strategy, remedy.Scenario), s.Times, unlikeIn[[2]string{how.Name, scenario}]); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(s.printer.Table(s.player.Strategies(), plays), s.printer.Legend(s.player.Strategies())); err != nil {
		return err
	}
	fmt.Fprintf(s.screen.out, "%d plays in %.1f s; %d ended unlike the table says.\n", total, time.Since(began).Seconds(), unlike)
	return s.end(plays)
}

// some plays what was named, and shows it whole.
func (s stepper) some(ctx context.Context) error {
	var wishes []steps.Wish
	for _, name := range s.Names {
		chosen, err := s.player.Choose(name)
		if err != nil {
			return fmt.Errorf("%w: %w; `go run ./loadtest step` lists them", cli.ErrUsage, err)
		}
		for _, w := range chosen {
			w.Times = s.Times
			wishes = append(wishes, w)
		}
	}
	plays, err := s.player.Series(ctx, wishes, func(steps.Play) {})
	if err != nil {
		return err
	}
	for _, p := range plays {
		if err := s.printer.Whole(p); err != nil {
			return err
		}
		if p.Passed {
			continue
		}
		w := steps.RemedyFor(p)
		remedy, err := s.player.Play(ctx, w.Strategy, w.Scenario)
		if err != nil {
			return err
		}
		if err := s.printer.Whole(remedy); err != nil {
			return err
		}
		plays = append(plays, remedy)
	}
	return s.end(plays)
}

// end saves the plays and tells whether all were as the table of strategies says.
func (s stepper) end(plays []steps.Play) error {
	if err := s.save(plays); err != nil {
		return err
	}
	if slices.ContainsFunc(plays, func(p steps.Play) bool { return !p.Expected }) {
		return errBroken
	}
	return nil
}

func (s stepper) save(plays []steps.Play) (err error) {
	out := s.screen.json
	switch s.JSON {
	case "":
		return nil
	case "-":
	default:
		file, createErr := os.Create(s.JSON)
		if createErr != nil {
			return fmt.Errorf("--json: %w", createErr)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = file
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Plays []steps.Play `json:"plays"`
	}{plays})
}

// list says what can be named.
func (s stepper) list() error {
	fmt.Fprint(s.screen.out, "Scenarios:\n")
	for _, in := range steps.Scenarios() {
		fmt.Fprintf(s.screen.out, "  %-14s %s\n", in.Name, in.Title)
	}
	fmt.Fprint(s.screen.out, "\nWrong strategies, each with the scenario that it fails:\n")
	fails := steps.Failures()
	for _, name := range sortedKeys(fails) {
		fmt.Fprintf(s.screen.out, "  %-22s %s\n", name, fails[name])
	}
	_, err := fmt.Fprint(s.screen.out, "\nPlay one: go run ./loadtest step none. All: go run ./loadtest step all. More: --help.\n")
	return err
}
