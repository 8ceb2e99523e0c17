package main

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/loadtest/servers"
	"example.com/shop/loadtest/shops"
	"example.com/shop/loadtest/step"
)

// all is the name of everything there is.
const all = "all"

// stepCommand plays lessons.
type stepCommand struct {
	step.Command
	servers.Servers
}

// Validate checks the flags.
func (c *stepCommand) Validate() error { return c.Check() }

// Run plays, in shops that use the servers of the flags.
func (c *stepCommand) Run(ctx context.Context, e environment) error {
	s := newScreen(e, "")
	if c.Name == "" {
		return c.Command.Run(ctx, shops.Instances{}, step.Output{Out: s.out, Lang: c.Lang})
	}
	return play(ctx, &c.Servers, s, c.Lang, c.Command.Run)
}

// exploreCommand plays all schedules of a strategy.
type exploreCommand struct {
	step.Explore
	servers.Servers
}

// Validate checks the flags, those of step included.
func (c *exploreCommand) Validate() error { return errors.Join(c.Explore.Validate(), c.Check()) }

// Run explores, in shops that use the servers of the flags.
func (c *exploreCommand) Run(ctx context.Context, e environment) error {
	return play(ctx, &c.Servers, newScreen(e, ""), c.Lang, c.Explore.Run)
}

// play runs one of the two, in shops that use the servers.
func play(ctx context.Context, on *servers.Servers, s screen, language string, run func(context.Context, shops.Instances, step.Output) error) (err error) {
	stop, err := on.Start(ctx, s.print)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	out := step.Output{Out: s.out, Lang: language, Colour: s.colour, Progress: s.print}
	err = run(ctx, shops.Instances{Servers: *on}, out)
	if errors.Is(err, step.ErrUnknown) || errors.Is(err, step.ErrNotApplicable) || errors.Is(err, step.ErrSchedule) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}
