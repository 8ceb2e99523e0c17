package web

import (
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
	idle       = "idle"       // before the first run
	waiting    = "waiting"    // for the races before it
	opening    = "opening"    // shops are being started
	connecting = "connecting" // buyers connect
	racing     = "racing"
	checking   = "checking" // the shop's books against the answers that buyers got
	running    = "running"
	done       = "done"
	failed     = "failed"
	stopped    = "stopped"
)

// run is a race of each chosen strategy.
type run struct {
	id     int // from 1; 0 before the first
	choice Choice
	parted bool            // the races were asked for together, but do not fit
	ctx    context.Context //nolint:containedctx // of the run, which outlives its request
	stop   context.CancelFunc

	unready sync.WaitGroup // races whose buyers are not connected, of those that start together

	mu     sync.Mutex // guards what changes, also in the races
	phase  string
	races  []*race
	report result.Report // once it is over
}

// race is that of one strategy in a run.
type race struct {
	run      *run
	strategy shopclient.Strategy
	ready    func() // the others need not wait for it any more

	phase  string
	tally  *crowd.Tally // once buyers connect
	result result.Strategy
	err    error
}

func newRun(ctx context.Context, id int, c Choice, chosen []shopclient.Strategy) *run {
	r := &run{id: id, choice: c, phase: running}
	r.ctx, r.stop = context.WithCancel(ctx)
	for _, s := range chosen {
		one := &race{run: r, strategy: s, phase: waiting, ready: func() {}}
		if c.Together {
			r.unready.Add(1)
			one.ready = sync.OnceFunc(r.unready.Done)
		}
		r.races = append(r.races, one)
	}
	return r
}

// hold holds the races, all at once or one after the other, and makes the report.
func (r *run) hold(lab Lab) {
	defer r.stop()
	report := lab.Report(r.choice)
	var all sync.WaitGroup
	for _, one := range r.races {
		all.Go(func() { one.hold(r.ctx, lab) })
		if !r.choice.Together {
			all.Wait()
		}
	}
	all.Wait()

	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase, r.report = done, report
	if r.ctx.Err() != nil {
		r.phase = stopped
	}
	for _, one := range r.races {
		switch one.phase {
		case done:
			if r.choice.Together && len(r.races) > 1 {
				one.result.Notes = append(one.result.Notes, "raced at the same time as the other strategies, which slows each of them")
			}
			r.report.Strategies = append(r.report.Strategies, one.result)
		case failed:
			r.phase = failed
			r.report.NotRun = append(r.report.NotRun, result.NotRun{Name: one.strategy.Name, Reason: one.err.Error()})
		default:
			r.report.NotRun = append(r.report.NotRun, result.NotRun{Name: one.strategy.Name, Reason: "the run was stopped"})
		}
	}
}

func (r *race) hold(ctx context.Context, lab Lab) {
	defer r.ready()
	if ctx.Err() != nil {
		r.enter(stopped)
		return
	}
	r.enter(opening)
	held, err := lab.Race(ctx, r.run.choice, r.strategy, r)
	r.run.mu.Lock()
	defer r.run.mu.Unlock()
	switch {
	case err == nil:
		r.phase, r.result = done, held
	case ctx.Err() != nil:
		r.phase = stopped
	default:
		r.phase, r.err = failed, err
	}
}

func (r *race) enter(phase string) {
	r.run.mu.Lock()
	defer r.run.mu.Unlock()
	r.phase = phase
}

// Connecting, Ready and Answered make a race its own crowd.Watcher.
func (r *race) Connecting(tally *crowd.Tally) {
	r.run.mu.Lock()
	defer r.run.mu.Unlock()
	r.phase, r.tally = connecting, tally
}

// Ready waits until those that race at the same time are also ready, or have ended.
func (r *race) Ready(context.Context) {
	r.ready()
	r.run.unready.Wait()
	r.enter(racing)
}

// Answered means that the rest is auditing.
func (r *race) Answered() { r.enter(checking) }

func (r *run) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.phase != running
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
}

type raceState struct {
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	Connected int64  `json:"connected"`
	Orders    int64  `json:"orders"` // of one unit each
	Refused   int64  `json:"refused"`
	Errors    int64  `json:"errors"`
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
		s.Races = append(s.Races, one.state())
	}
	return s
}

func (r *race) state() raceState {
	s := raceState{Name: r.strategy.Name, Phase: r.phase}
	if r.err != nil {
		s.Failure = r.err.Error()
	}
	if t := r.tally; t != nil {
		s.Connected, s.Orders, s.Refused, s.Errors = t.Connected.Load(), t.Ordered.Load(), t.Refused.Load(), t.Errors.Load()
	}
	if r.phase == done {
		s.Orders = r.result.UnitsSold // the books are more certain than the answers that buyers got
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
		if r.parted {
			text += " " + lang.Text(language, "The strategies race one after the other: together they need more file descriptors than this process may open.")
		}
		return text
	}
	var words []string
	for _, one := range r.races {
		text := lang.Text(language, one.phase)
		if one.phase == done {
			text = wordOf(one.result, language).Text
		}
		words = append(words, one.strategy.Name+" "+text)
	}
	format := map[string]string{done: "Done: %s.", failed: "Failed: %s.", stopped: "Stopped: %s."}[r.phase]
	return lang.Text(language, format, strings.Join(words, lang.Text(language, ", ")))
}
