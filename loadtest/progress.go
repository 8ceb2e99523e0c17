package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"

	"example.com/shop/loadtest/buyers"
)

// watch shows how a race goes until stop is called, which returns when the last
// word is written.
func (s screen) watch(strategy string, all int, tally *buyers.Tally) (stop func()) {
	show, every := lines(s.progress, strategy, all), 2*time.Second
	if s.live {
		show, every = bar(s.progress, strategy), 100*time.Millisecond
	}
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				show(tally, false)
			case <-done:
				show(tally, true)
				return
			}
		}
	})
	return func() {
		close(done)
		wait.Wait()
	}
}

// lines shows progress where a line that was written stays.
func lines(w io.Writer, strategy string, all int) func(*buyers.Tally, bool) {
	return func(t *buyers.Tally, last bool) {
		if last {
			fmt.Fprintf(w, "%s: %s\n", strategy, state(t))
			return
		}
		if connected := t.Connected.Load(); connected < int64(all) {
			fmt.Fprintf(w, "%s: %s of %s buyers at the door\n", strategy, humanize.Comma(connected), humanize.Comma(int64(all)))
			return
		}
		if t.Orders() != int64(all) { // they order again and again
			fmt.Fprintf(w, "%s: %.0f %% of the race is over: %s\n", strategy, 100*t.Done(), state(t))
			return
		}
		fmt.Fprintf(w, "%s: %s of %s buyers answered: %s\n", strategy,
			humanize.Comma(t.Answered()), humanize.Comma(int64(all)), state(t))
	}
}

// bar shows progress on a terminal.
func bar(w io.Writer, strategy string) func(*buyers.Tally, bool) {
	const whole = 1000
	b := progressbar.NewOptions(whole,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
	)
	return func(t *buyers.Tally, last bool) {
		// The screen being gone is no reason to stop a race.
		b.Describe(fmt.Sprintf(" %-12s %s", strategy, state(t)))
		_ = b.Set(int(whole * t.Done()))
		if last {
			_ = b.Exit()
			fmt.Fprintln(w)
		}
	}
}

func state(t *buyers.Tally) string {
	s := fmt.Sprintf("%s orders, %s refused", humanize.Comma(t.Ordered.Load()), humanize.Comma(t.Refused.Load()))
	if n := t.Errors.Load(); n > 0 {
		s += fmt.Sprintf(", %s errors", humanize.Comma(n))
	}
	if n := t.Cancelled.Load(); n > 0 {
		s += fmt.Sprintf(", %s cancelled", humanize.Comma(n))
	}
	if n := t.Retries.Load(); n > 0 {
		s += fmt.Sprintf(", asked again %s times", humanize.Comma(n))
	}
	return s
}
