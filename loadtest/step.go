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

// Validate checks the flags, those of step included.
func (c *stepCommand) Validate() error {
	if err := errors.Join(c.Command.Validate(), c.Check()); err != nil {
		return err // before a file is made
	}
	return checkFile("json", c.JSON)
}

// Run plays, in shops that use the servers of the flags.
func (c *stepCommand) Run(ctx context.Context, e environment) (err error) {
	s := newScreen(e, c.JSON)
	if c.Name != "" {
		stop, err := c.Start(ctx, s.print)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	out := step.Output{Out: s.out, Lang: c.Lang, Colour: s.colour, JSON: s.json, Progress: s.print}
	err = c.Command.Run(ctx, shops.Instances{Servers: c.Servers}, out)
	if errors.Is(err, step.ErrUnknown) || errors.Is(err, step.ErrNotApplicable) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}

// exploreCommand plays all schedules of a strategy.
type exploreCommand struct {
	step.Explore
	servers.Servers
}

// Validate checks the flags, those of step included.
func (c *exploreCommand) Validate() error { return errors.Join(c.Explore.Validate(), c.Check()) }

// Run explores, in shops that use the servers of the flags.
func (c *exploreCommand) Run(ctx context.Context, e environment) (err error) {
	s := newScreen(e, "")
	stop, err := c.Start(ctx, s.print)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	out := step.Output{Out: s.out, Lang: c.Lang, Colour: s.colour, Progress: s.print}
	err = c.Explore.Run(ctx, shops.Instances{Servers: c.Servers}, out)
	if errors.Is(err, step.ErrUnknown) || errors.Is(err, step.ErrNotApplicable) || errors.Is(err, step.ErrSchedule) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}
