package main

import (
	"context"
	"io"
)

// call is what a command is called with.
type call struct {
	args           []string
	getenv         func(string) string
	stdout, stderr io.Writer
}

// command returns what the first argument names, and the arguments after it. Where
// it names nothing, that is a race.
func command(args []string) (run func(context.Context, call) error, rest []string) {
	if len(args) > 0 {
		if run := commands()[args[0]]; run != nil {
			return run, args[1:]
		}
	}
	return race, args
}

// commands is the table of those that are named.
func commands() map[string]func(context.Context, call) error {
	return map[string]func(context.Context, call) error{
		"compare": compareRuns,
		"step":    step,
	}
}

// race holds one race per strategy.
func race(ctx context.Context, c call) error {
	flags, err := parse(c.args, c.stdout, c.stderr)
	if err != nil {
		return err
	}
	screen := newScreen(c.getenv, c.stdout, c.stderr, flags.JSON)
	l := lab{flags: flags, screen: screen, log: newShopLog(c.stderr), watch: screen.watch}
	return l.test(ctx)
}
