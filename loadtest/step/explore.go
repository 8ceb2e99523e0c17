package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
	"example.com/shop/loadtest/stats"
)

// Explore is what the user chose of `loadtest explore`.
type Explore struct {
	Name string `arg:"" optional:"" name:"strategy" help:"A strategy, or 'all', which includes --crash."`

	Bounds
	Schedule string `group:"Schedules" placeholder:"NAME" help:"Play only this schedule, such as none:ABab."`
	lang.Flag
	shops.Servers
}

// ExploreAbout stands above the flags in the help.
const ExploreAbout = `Plays every schedule of two buyers who want the last unit, with at most two switches, and finds those that oversell.

A schedule says whose request takes the next step. Steps are what the other can notice: statements about the stock, BEGIN and
COMMIT, and taking and releasing a lock. A request that waits for the other's lock or row takes no step until it can go on.`

// Footer stands below the flags in the help.
func (Explore) Footer() string {
	return `
Examples:
  go run ./loadtest explore none                    the shortest way to sell the last unit twice
  go run ./loadtest explore redis --crash           no schedule oversells, even if processes die
  go run ./loadtest explore all                     the table of all strategies
  go run ./loadtest explore --schedule none:ABab    one schedule again
  go run ./loadtest explore get-then-del --crash --buyers 3 --units 2

The name of a schedule has a letter for each act: A is a step of A, a is all steps of A until it ends or has to wait, xa: A's
process dies, ta: A's lock runs out, and A does not notice. In none:ABab, A and B both read before A, and then B, goes on.

Exit code: 0 if a wrong strategy fails in some schedule and a right one in none; 1 if not, or if it could not be played; 2 if the
flags make no sense. With --schedule, 1 only if a right one fails.
`
}

// Validate returns the first flag that asks for what cannot be.
func (c *Explore) Validate() error {
	switch {
	case (c.Name == "") == (c.Schedule == ""):
		return errors.New("name a strategy or 'all', or a --schedule")
	case c.Units >= int64(c.Buyers):
		return fmt.Errorf("--units %d: want fewer units than buyers (%d), so that a buyer is left for a unit that comes back", c.Units, c.Buyers)
	case c.Schedule == "":
		return c.Check()
	case c.Bounds != DefaultBounds():
		return errors.New("--schedule plays one schedule, its name says how: leave out the flags of what to explore")
	}
	_, _, err := parseSchedule(c.Schedule)
	return cmp.Or(err, c.Check())
}

// Run explores, in shops that use the servers of the flags. A name that cannot be played is an ErrSchedule. Otherwise
// the error says which strategy was not as designed.
func (c *Explore) Run(ctx context.Context, out Output) (err error) {
	began := time.Now()
	out.Lang, c.Crash = c.Lang, c.Crash || c.Name == all
	player, closePlayer, err := openPlayer(ctx, &c.Servers, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closePlayer()) }()
	if c.Schedule != "" {
		played, err := player.Play(ctx, c.Schedule)
		if err != nil {
			return err
		}
		out.whole(played)
		if played.Designed && !played.Passed {
			return errors.New("a strategy that is designed to be correct has failed")
		}
		return nil
	}
	strategies, err := player.Strategies(ctx)
	if err != nil {
		return err
	}
	var results []Explored
	var last time.Time // of a line of progress: the first comes at once
	for _, s := range strategies {
		if c.Name != s.Name && (c.Name != all || !s.Available) {
			continue
		}
		found, err := player.Explore(ctx, s.Name, c.Bounds, func(played, todo int) {
			if time.Since(last) > time.Second {
				last = time.Now()
				out.Progress(lang.Text(out.Lang, "%s: %d schedules played, at least %d to go", s.Name, played, todo))
			}
		})
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		results = append(results, found)
	}
	switch {
	case len(results) == 0:
		_, err = player.strategy(ctx, c.Name)
	case c.Name == all:
		out.explored(results, strategies, time.Since(began))
	default:
		err = c.show(ctx, player, out, results[0])
	}
	for _, e := range results {
		if e.Designed && len(e.Failed) > 0 || !e.Designed && len(e.Failed) == 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d of %d schedules failed, which is not what it is designed for",
				e.Strategy, len(e.Failed), len(e.Schedules)))
		}
	}
	if err == nil {
		out.conclude(results)
	}
	return err
}

// conclude says that the strategies were as they are designed to be.
func (o Output) conclude(results []Explored) {
	switch e := results[0]; {
	case len(results) > 1:
		o.paragraph(lang.Text(o.Lang, "As designed: each wrong strategy fails in some schedule, and no right one does."))
	case e.Designed:
		o.paragraph(lang.Text(o.Lang, "As designed: %s is correct in all %d schedules.", e.Strategy, len(e.Schedules)))
	default:
		o.paragraph(lang.Text(o.Lang, "As designed: %s is wrong, and fails in %d of %d schedules.", e.Strategy, len(e.Failed), len(e.Schedules)))
	}
}

// show writes the outcome of one strategy, with the shortest schedule that failed.
func (c *Explore) show(ctx context.Context, player *Player, out Output, e Explored) error {
	bound := lang.Text(out.Lang, "Schedules have at most %d switches away from a request that could go on.", c.Preemptions)
	if c.Crash {
		bound = lang.Text(out.Lang,
			"Schedules have at most %d switches away from a request that could go on; the death of a process, "+
				"or a lock that runs out, counts as one of them.", c.Preemptions)
	}
	fmt.Fprintln(out.Out, out.bold(lang.Text(out.Lang, "%s: %s", e.Strategy, e.counts(out.Lang))))
	out.paragraph(bound)
	if len(e.Failed) == 0 {
		if !e.Designed && !c.Crash {
			out.paragraph(lang.Text(out.Lang, "What this strategy does wrong shows only if a process dies or a lock runs out: add --crash."))
		}
		return nil
	}
	fmt.Fprintf(out.Out, "\n%s\n\n", lang.Text(out.Lang,
		"The shortest that failed, again: go run ./loadtest explore --schedule %s", e.Shortest()))
	again, err := player.Play(ctx, e.Shortest())
	if err == nil {
		out.whole(again)
	}
	return err
}

func (e Explored) counts(language string) string {
	n := len(e.Schedules)
	return lang.Text(language, "%d of %d schedules, %d oversold, %d undersold or stuck", n, n, e.Oversold, e.Undersold)
}

func (o Output) explored(results []Explored, strategies []shopclient.Strategy, took time.Duration) {
	var rows []table.Row
	total := 0
	for _, e := range results {
		total += len(e.Schedules)
		rows = append(rows, table.Row{e.Strategy, len(e.Schedules), e.Oversold, e.Undersold, e.Shortest()})
	}
	header := o.header("strategy", "schedules", "oversold", "undersold or stuck", "shortest that failed")
	fmt.Fprintln(o.Out, stats.Table(header, rows, 2, 4))
	for _, s := range strategies {
		if !s.Available {
			o.notPlayed(s.Name, s.Reason)
		}
	}
	fmt.Fprintln(o.Out, lang.Text(o.Lang, "%d schedules in %.1f s.", total, took.Seconds()))
}

// Explored is the outcome of all schedules of a strategy.
type Explored struct {
	Strategy  string   `json:"strategy"`
	Designed  bool     `json:"designed"`  // it is designed to be correct
	Schedules []string `json:"schedules"` // their names
	Failed    []string `json:"failed"`    // of these, the shortest name first
	Oversold  int      `json:"oversold"`
	Undersold int      `json:"undersold"` // no unit is oversold, but one is left, or a buyer waits for ever
}

func (e *Explored) add(p Position) {
	e.Schedules = append(e.Schedules, p.Schedule)
	if p.Passed {
		return
	}
	if p.Sold > p.Units {
		e.Oversold++
	} else {
		e.Undersold++
	}
	e.Failed = append(e.Failed, p.Schedule)
}

// Shortest is the schedule of those that failed with the shortest name; empty if none failed.
func (e Explored) Shortest() string {
	if len(e.Failed) == 0 {
		return ""
	}
	return e.Failed[0]
}

// Bounds of what is explored. They are also flags.
type Bounds struct {
	Buyers      int   `group:"Schedules" default:"2" enum:"2,3" help:"Requests for the last unit (2 to 3)."`
	Units       int64 `group:"Schedules" default:"1" enum:"1,2" help:"Units that are left (1 to 2)."`
	Preemptions int   `group:"Schedules" default:"2" enum:"0,1,2,3,4" help:"Preemptions: switches away from a request that could go on (0 to 4). A fault counts as one."`
	Crash       bool  `group:"Schedules" help:"Also let the process die, or its lock run out, at each step; one such fault in a schedule."`
}

// DefaultBounds returns the bounds of a command line without flags.
func DefaultBounds() Bounds {
	return Bounds{Buyers: 2, Units: 1, Preemptions: 2}
}

// parallel is how many schedules are played at a time, each in shops of its own: some are about time, and pass it.
const parallel = 4

// Explore plays each schedule of a strategy within the bounds. progress is called with the number of
// schedules played, and the number of known schedules still to be played. The errors are the errors of
// Position and, if ctx ends, its cause.
func (p *Player) Explore(ctx context.Context, name string, within Bounds, progress func(played, todo int)) (Explored, error) {
	strategy, err := p.strategy(ctx, name)
	if err != nil {
		return Explored{}, err
	}
	found := Explored{Strategy: name, Designed: strategy.Designed, Schedules: []string{}, Failed: []string{}}
	var mu sync.Mutex
	for todo := [][]act{{}}; len(todo) > 0 && err == nil && ctx.Err() == nil; {
		wave, left := todo, len(todo)
		todo = nil
		group, exploring := errgroup.WithContext(ctx)
		group.SetLimit(2 * parallel) // they wait more than they work, and no act is about time
		for _, acts := range wave {
			group.Go(func() error {
				if exploring.Err() != nil {
					return nil
				}
				all, done, err := p.walk(exploring, strategy, plan{Bounds: within, acts: acts})
				mu.Lock()
				defer mu.Unlock()
				left--
				if errors.Is(err, errNoLock) {
					return nil // it is no schedule of this strategy
				}
				if err != nil || exploring.Err() != nil {
					return err
				}
				todo = append(todo, instead(done, len(acts))...)
				found.add(all[len(all)-1])
				progress(len(found.Schedules), left+len(todo))
				return nil
			})
		}
		err = group.Wait()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	slices.Sort(found.Schedules)
	slices.SortFunc(found.Failed, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return found, err
}

// instead returns the schedules that go another way than this one, behind its first acts.
func instead(done []decision, first int) (others [][]act) {
	var acts []act
	for i, d := range done {
		for _, other := range d.instead {
			if i >= first {
				others = append(others, append(slices.Clone(acts), other))
			}
		}
		acts = append(acts, d.act)
	}
	return others
}
