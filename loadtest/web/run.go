package web

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
)

// Phases of a run, and of a race in it.
const (
	idle       = "idle"    // before the first run
	waiting    = "waiting" // for the races before it
	running    = "running" // of a race, the page sees one of the next four
	opening    = "opening" // shops are being started
	connecting = "connecting"
	racing     = "racing"
	checking   = "checking" // the shop's books against the answers that buyers got
	done       = "done"
	failed     = "failed"
	stopped    = "stopped"
)

// run is a race of each chosen strategy.
type run struct {
	id     int // from 1; 0 before the first
	choice Choice
	unfit  bool            // the races were to be held at the same time, for which this process may open too few files
	ctx    context.Context //nolint:containedctx // of the run, which outlives its request
	stop   context.CancelFunc

	mu     sync.Mutex // guards what changes, also in the races
	phase  string
	races  []*race
	report result.Report // once it is over
}

// race is the race of one strategy in a run.
type race struct {
	raceState
	strategy shopclient.Strategy
	tally    crowd.Tally
	result   result.Strategy
}

func newRun(ctx context.Context, id int, c Choice, chosen []shopclient.Strategy) *run {
	r := &run{id: id, choice: c, phase: running}
	r.ctx, r.stop = context.WithCancel(ctx)
	for _, s := range chosen {
		r.races = append(r.races, &race{strategy: s, raceState: raceState{Name: s.Name, Phase: waiting}})
	}
	return r
}

// hold holds the races, all at once or one after the other, and makes the report. It calls free before the run is over.
func (r *run) hold(lab Lab, free func()) {
	defer r.stop()
	report := lab.Report(r.choice)
	var all sync.WaitGroup
	for _, one := range r.races {
		all.Go(func() { r.race(lab, one) })
		if !r.choice.Together {
			all.Wait()
		}
	}
	all.Wait()

	r.mu.Lock()
	defer r.mu.Unlock()
	free()
	r.phase, r.report = done, report
	if r.ctx.Err() != nil {
		r.phase = stopped
	}
	for _, one := range r.races {
		if one.Phase == failed {
			r.phase = failed
		}
		if one.Phase != done {
			r.report.NotRun = append(r.report.NotRun, result.NotRun{Name: one.Name, Reason: cmp.Or(one.Failure, "the run was stopped")})
			continue
		}
		if r.choice.Together && len(r.races) > 1 {
			one.result.Notes = append(one.result.Notes, "raced at the same time as the other strategies, so each of them was slower")
		}
		r.report.Strategies = append(r.report.Strategies, one.result)
	}
}

func (r *run) race(lab Lab, one *race) {
	r.mu.Lock()
	one.Phase = running
	r.mu.Unlock()
	held, err := lab.Race(r.ctx, r.choice, one.strategy, &one.tally)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		one.Phase, one.result = done, held
	case r.ctx.Err() != nil:
		one.Phase = stopped
	default:
		one.Phase, one.Failure = failed, err.Error()
	}
}

// outcome returns the report, once there is something in it.
func (r *run) outcome() (result.Report, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report, len(r.report.Strategies) > 0
}

// state is what the page shows of a run while it goes on.
type state struct {
	Run    int         `json:"run"`
	Phase  string      `json:"phase"`
	Choice Choice      `json:"choice"`
	Races  []raceState `json:"races"`
	Status string      `json:"status"` // a sentence, read out to those who cannot see the bars
	Result bool        `json:"result"` // there is a report
	Busy   bool        `json:"busy"`   // with a run, or with other long work
}

type raceState struct {
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	Connected int64  `json:"connected"`
	Orders    int64  `json:"orders"` // of one unit each
	Refused   int64  `json:"refused"`
	Errors    int64  `json:"errors"`
	Available *int64 `json:"available,omitempty"` // the stock column after the last order, if the shop reports it
	Failure   string `json:"failure,omitempty"`
}

// state is what the page shows, with its status in a language.
func (r *run) state(language string) state {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := state{
		Run: r.id, Phase: r.phase, Choice: r.choice, Races: []raceState{}, Status: r.status(language), Result: len(r.report.Strategies) > 0,
	}
	for _, one := range r.races {
		s.Races = append(s.Races, one.state(int64(r.choice.Buyers)))
	}
	return s
}

func (r *race) state(buyers int64) raceState {
	s := r.raceState
	s.Connected, s.Orders = r.tally.Connected.Load(), r.tally.Ordered.Load()
	s.Refused, s.Errors = r.tally.Refused.Load(), r.tally.Errors.Load()
	s.Available = r.tally.Available.Load()
	switch {
	case s.Phase == done:
		s.Orders = r.result.UnitsSold // the books are more certain than the answers that buyers got
		if s.Available != nil {
			s.Available = &r.result.StockLeft
		}
	case s.Phase != running:
	case s.Connected == 0:
		s.Phase = opening
	case s.Connected < buyers:
		s.Phase = connecting
	case s.Orders+s.Refused+s.Errors < buyers:
		s.Phase = racing
	default:
		s.Phase = checking
	}
	return s
}

// status is a sentence in a language.
func (r *run) status(language string) string {
	switch r.phase {
	case idle:
		return ""
	case running:
		text := lang.Text(language, "%s buyers, %s units.", humanize.Comma(int64(r.choice.Buyers)), humanize.Comma(r.choice.Stock))
		if r.unfit {
			text += lang.Text(language, " One race after the other: together they need more open files than this process may have.")
		}
		return text
	}
	var words []string
	for _, one := range r.races {
		text := lang.Text(language, one.Phase)
		if one.Phase == done {
			text = wordOf(one.result, language).Text
		}
		words = append(words, lang.Text(language, "%s: %s", one.Name, text))
	}
	format := map[string]string{done: "Done: %s.", failed: "Failed: %s.", stopped: "Stopped: %s."}[r.phase]
	return lang.Text(language, format, strings.Join(words, lang.Text(language, ", ")))
}
