package main

import (
	"context"
	"fmt"
	"slices"

	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shops"
	"example.com/shop/loadtest/steps"
)

// catch plays the scenario of each wrong strategy that its race did not catch, when
// all are run: some mistakes need a crash or a pause at one moment, which a crowd
// seldom brings about.
func (l lab) catch(ctx context.Context, r *report.Report) (err error) {
	missed := func(s report.Strategy) bool {
		return steps.Failures()[s.Name] != "" && s.Correct()
	}
	from, own := l.source(1).(shops.Instances)
	if !own || !slices.Equal(l.Strategies, []string{all}) || !slices.ContainsFunc(r.Strategies, missed) {
		return nil
	}
	player, err := steps.Open(ctx, steps.Options{Instances: from, Pairs: 1})
	if err != nil {
		return err
	}
	defer func() { err = cleanup.Join(err, player.Close(context.WithoutCancel(ctx))) }()
	for i := range r.Strategies {
		s := &r.Strategies[i]
		if !missed(*s) {
			continue
		}
		scenario := steps.Failures()[s.Name]
		l.screen.tell(fmt.Sprintf("%s was not caught by its race: two buyers play %s", s.Name, scenario))
		play, err := player.Play(ctx, s.Name, scenario)
		if err != nil {
			return err
		}
		note := "This race did not catch it, and neither did the play "
		if !play.Passed {
			s.CaughtIn, note = scenario, "This race did not catch it. The play does, "
		}
		s.Notes = append(s.Notes, fmt.Sprintf("%sgo run ./loadtest step %s: %s", note, s.Name, play.Outcome))
	}
	return nil
}
