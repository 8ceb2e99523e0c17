package main

import (
	"context"
	"fmt"
	"slices"

	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/step"
)

// catch plays the scenario of each wrong strategy that its race did not catch, when
// all are run: some mistakes need a crash or a pause at one moment, which a crowd
// seldom brings about.
func (l lab) catch(ctx context.Context, chosen []shopclient.Strategy, r *result.Report) (err error) {
	if l.Target != "" || !slices.Equal(l.Strategies, []string{all}) {
		return nil
	}
	player := step.NewPlayer(l.source(0))
	defer func() { err = cleanup.Join(err, player.Close(context.WithoutCancel(ctx))) }()
	for i := range r.Strategies {
		s := &r.Strategies[i]
		mistake, wrong := step.MistakeOf(s.Name)
		if !wrong || !s.Correct() {
			continue
		}
		l.screen.print(fmt.Sprintf("%s was not caught by its race: two buyers play %s", s.Name, mistake.Scenario))
		how := chosen[slices.IndexFunc(chosen, func(c shopclient.Strategy) bool { return c.Name == s.Name })]
		play, err := player.Play(ctx, how, mistake.Scenario)
		if err != nil {
			return err
		}
		note := "This race did not catch it, and neither did the play "
		if !play.Passed {
			s.CaughtIn, note = mistake.Scenario, "This race did not catch it. The play does, "
		}
		s.Notes = append(s.Notes, fmt.Sprintf("%sgo run ./loadtest step %s: %s", note, s.Name, play.Outcome))
	}
	return nil
}
