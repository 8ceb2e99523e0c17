// Package web shows a load test in HTML: as a report in one file, and as a page in the browser from which races are
// started and watched, and schedules played step by step (Serve).
//
// The report needs nothing but itself: no script, font or image from elsewhere, and its Content-Security-Policy forbids
// them. Its charts are SVG, drawn when it is written, with widths in percent, so that they fit a phone, a screen and
// paper. What a colour means, a word and a pattern say as well.
package web

import (
	"context"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/faults"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/step"
)

// Lab is what the page works with. Its functions may be called concurrently.
type Lab struct {
	Strategies []shopclient.Strategy // the shop's own table
	Lessons    []step.Lesson         // schedules to be played step by step; none where the shops are others', and then no game either
	Defaults   Choice                // what the form shows first; 0 Instances where they cannot be chosen

	// Unraced returns what to know of a strategy before its race, and what shows its mistake instead; nothing of most.
	Unraced func(strategy string) (why, instead string)
	// Check returns a choice as it can be raced, one strategy after the other where they do not fit
	// together, or what is wrong with it, a *InputError.
	Check  func(Choice) (Choice, error)
	Report func(Choice) result.Report // of no races yet
	// Race holds the race of one strategy.
	Race func(context.Context, Choice, shopclient.Strategy, *crowd.Tally) (result.Strategy, error)
	// Position plays a schedule as far as its name says; loose, it leaves out what does not fit the
	// strategy (step.Player).
	Position func(ctx context.Context, name string, loose bool) (step.Position, error)
	// Record plays a lesson and its remedy, to be stepped through.
	Record func(context.Context, step.Lesson) (step.Recording, error)
	// Explore plays all schedules of a strategy within the bounds. progress is called with the number of schedules played,
	// and of those that are known and still to be played.
	Explore func(ctx context.Context, strategy string, within step.Bounds, progress func(played, todo int)) (step.Explored, error)
	// KillPrimary sells on a MySQL group and on an asynchronous replica, and kills the primary of each. CanKillPrimary
	// returns why that is impossible here, if it is.
	KillPrimary    func(ctx context.Context, seed uint64, progress func(line string)) ([]faults.Failover, error)
	CanKillPrimary func(context.Context) error
}

// Choice is the content of the form.
type Choice struct {
	Strategies []string `json:"strategies"`
	Buyers     int      `json:"buyers"`
	Stock      int64    `json:"stock"`
	Instances  int      `json:"instances"`
	ThinkMS    float64  `json:"think_ms"`

	// Together lets all strategies race at the same time, which is good to watch and slows each of them down.
	Together bool `json:"together"`
}

// InputError is what is wrong with a field of the form, a flag or a request.
type InputError struct {
	Field  string `json:"field,omitempty"` // as the flag is called, without dashes; empty if Text names it
	Text   string `json:"text"`
	status int    // of the answer; 0: 422

	Passing bool `json:"passing,omitempty"` // it is over once the lab is not busy any more
}

func (e *InputError) Error() string {
	if e.Field == "" {
		return e.Text
	}
	return "--" + e.Field + ": " + e.Text
}
