package ui

import (
	"context"
	"slices"
	"time"

	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/steps"
)

// Lab is what the page plays with. Its methods may be called concurrently.
type Lab interface {
	// Strategies is the shop's own table of them.
	Strategies() []shopclient.Strategy

	// Usual is what the form says at first. Instances are 0 where they cannot be
	// chosen.
	Usual() Choice

	// Check returns nil, or what is wrong with a choice.
	Check(c Choice) *Problem

	// Race holds the race of one strategy.
	Race(ctx context.Context, c Choice, how shopclient.Strategy, watch Watcher) (report.Strategy, error)

	// Scenarios are those that can be played, none where the shops are others'.
	Scenarios() []steps.Scenario

	// Excuse returns why a scenario does not apply to a strategy; empty if it does.
	Excuse(how shopclient.Strategy, what steps.Scenario) string

	// Play plays a scenario with a strategy.
	Play(ctx context.Context, how shopclient.Strategy, what steps.Scenario) (steps.Play, error)

	// Blank is a report of no races yet on such a choice.
	Blank(c Choice) report.Report
}

// Watcher hears of a race, in this order.
type Watcher interface {
	// Connecting says that the buyers set out, and what they count in.
	Connecting(tally *buyers.Tally)

	// Ready says that all have connected. They are let go when it returns, which it
	// does when ctx ends.
	Ready(ctx context.Context)

	// Answered says that all have an answer.
	Answered()
}

// Choice is what the form asks for.
type Choice struct {
	Strategies []string `json:"strategies"`
	Buyers     int      `json:"buyers"`
	Stock      int64    `json:"stock"`
	Instances  int      `json:"instances"`
	ThinkMS    float64  `json:"think_ms"`

	// Together lets all strategies race at the same moment, which is good to watch
	// and slows each of them down.
	Together bool `json:"together"`
}

// Think is the shop's pause between reading stock and writing it.
func (c Choice) Think() time.Duration {
	const hour = 3_600_000 // of milliseconds: far beyond the limit, and within a Duration
	return time.Duration(min(max(c.ThinkMS, -hour), hour) * float64(time.Millisecond))
}

// Problem is what is wrong with a field of the form.
type Problem struct {
	Field string `json:"field,omitempty"` // as the flag is called
	Text  string `json:"text"`
}

// pick returns the rows of these names, in their order and each once.
func pick(table []shopclient.Strategy, names []string) ([]shopclient.Strategy, *Problem) {
	var chosen []shopclient.Strategy
	for _, name := range names {
		named := func(s shopclient.Strategy) bool { return s.Name == name }
		i := slices.IndexFunc(table, named)
		switch {
		case i < 0:
			return nil, &Problem{"strategies", "there is no strategy of that name"}
		case !table[i].Available:
			return nil, &Problem{"strategies", name + " cannot be run: " + table[i].Reason}
		case !slices.ContainsFunc(chosen, named):
			chosen = append(chosen, table[i])
		}
	}
	if len(chosen) == 0 {
		return nil, &Problem{"strategies", "choose at least one"}
	}
	return chosen, nil
}
