package step

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// Command is what the user chose of `loadtest step`.
type Command struct {
	Names []string `arg:"" optional:"" name:"name" help:"A strategy, a scenario, or 'all'. Without one, they are listed."`

	Times    int    `default:"1" help:"Play each this many times (1 to 1000), and demand the same outcome each time."`
	Parallel int    `default:"10" help:"Plays at a time, each in two shops of its own (1 to 32)."`
	JSON     string `name:"json" placeholder:"FILE" help:"Write the plays with all their events as JSON too; '-' for stdout, everything else then goes to stderr."`
}

// About stands above the flags in the help.
const About = `Plays two buyers against each other, step by step, the same way every time.

Buyer A uses instance 1 of the shop, a process of its own; B uses instance 2. A schedule stops requests ahead of a command or
a COMMIT, and pauses or kills the process of A. The timeline then shows what each of them did and when, where it went wrong,
why, and what a right strategy does in the same schedule.`

// Footer stands below the flags in the help.
func (Command) Footer() string {
	return `
Examples:
  go run ./loadtest step                    the scenarios, and which strategy fails which
  go run ./loadtest step none               the lost update, line by line, then its remedy
  go run ./loadtest step get-then-del       a lock that is released too late
  go run ./loadtest step crash              what fails when a process dies
  go run ./loadtest step redis              a right one in all five scenarios
  go run ./loadtest step all --times 20     everything, 20 times: the same outcome 20 times
  go run ./loadtest step all --servers docker

A timeline reads from top to bottom; the first column is milliseconds since the play began. What A's request did is on the
left, B's on the right: HTTP, Redis commands and SQL with their answers, and the steps of the order. A line of dashes is
what the schedule does: stop, pause, kill, go on.

Exit code: 0 if every wrong strategy failed in its scenario and every right one passed in all, each time; 1 if not, or if a
play could not be held; 2 if the flags make no sense.
`
}

// all is the name of everything there is.
const all = "all"

// ErrUnknown means that there is no strategy or scenario of this name.
var ErrUnknown = errors.New("unknown")

// Validate returns the first flag that asks for what cannot be.
func (c Command) Validate() error {
	const maxTimes, maxParallel = 1000, 32
	switch {
	case c.Times < 1 || c.Times > maxTimes:
		return fmt.Errorf("--times %d: want 1 to %d", c.Times, maxTimes)
	case c.Parallel < 1 || c.Parallel > maxParallel:
		return fmt.Errorf("--parallel %d: want 1 to %d", c.Parallel, maxParallel)
	case slices.Contains(c.Names, all) && len(c.Names) > 1:
		return errors.New("'all' stands alone")
	case len(c.Names) == 0 && (c.Times > 1 || c.JSON != ""):
		return errors.New("name what to play: a strategy, a scenario, or 'all'")
	}
	return nil
}

// Output is where a Command writes.
type Output struct {
	Out      io.Writer // timelines and tables
	Colour   bool      // of Out
	JSON     io.Writer // for --json -
	Progress func(line string)
}

// series is a play that is held a number of times.
type series struct {
	strategy shopclient.Strategy
	in       Scenario
	times    int

	shown      Play // the first that ended unexpectedly, or else the first of all
	unexpected int  // how many did
}

// Run plays what was named, in shops that use the servers of from. A name that cannot be played is an ErrUnknown or
// ErrNotApplicable. Otherwise the error says how many plays ended unexpectedly or could not be held.
func (c Command) Run(ctx context.Context, from shops.Instances, out Output) (err error) {
	if len(c.Names) == 0 {
		list(out.Out)
		return nil
	}
	player, began := NewPlayer(from), time.Now()
	defer func() { err = errors.Join(err, player.Close(context.WithoutCancel(ctx))) }()
	strategies, err := player.Strategies(ctx)
	if err != nil {
		return err
	}
	chosen, err := c.choose(strategies)
	if err != nil {
		return err
	}
	if err := c.hold(ctx, player, chosen, out.Progress); err != nil {
		return err
	}
	total, unexpected, plays := 0, 0, []Play{}
	for _, s := range chosen {
		total, unexpected, plays = total+s.times, unexpected+s.unexpected, append(plays, s.shown)
		if c.Names[0] != all {
			out.whole(s.shown)
		}
	}
	if c.Names[0] == all {
		out.mistakes(chosen)
		out.table(strategies, plays)
		fmt.Fprintf(out.Out, "%d plays in %.1f s; %d unexpected results.\n", total, time.Since(began).Seconds(), unexpected)
	}
	if err := c.save(out.JSON, plays); err != nil {
		return err
	}
	if unexpected > 0 {
		return fmt.Errorf("%d of %d plays ended unexpectedly", unexpected, total)
	}
	return nil
}

// choose returns the plays of all names: a wrong strategy in its scenario, followed by its remedy; a right one in all
// that apply; a scenario with the strategies that fail it; all that apply.
func (c Command) choose(strategies []shopclient.Strategy) ([]*series, error) {
	var chosen []*series
	for _, name := range c.Names {
		before, missing := len(chosen), ""
		for _, strategy := range strategies {
			known, _ := MistakeOf(strategy.Name)
			for _, in := range Scenarios() {
				mistake := known.Scenario == in.Name
				certain := strategy.PromisesCorrect || mistake // the outcome is
				named := strategy.Name == name && certain || in.Name == name && mistake
				if name != all && !named {
					continue
				}
				if missing = Excuse(strategy, in); missing != "" {
					continue
				}
				s := &series{strategy: strategy, in: in, times: 1}
				if certain {
					s.times = c.Times
				}
				chosen = append(chosen, s)
				if mistake && name != all {
					by := slices.IndexFunc(strategies, func(s shopclient.Strategy) bool { return s.Name == known.By })
					chosen = append(chosen, &series{strategy: strategies[by], in: in, times: 1})
				}
			}
		}
		switch {
		case len(chosen) > before:
		case missing != "":
			return nil, fmt.Errorf("%s cannot be played: %w: %s", name, ErrNotApplicable, missing)
		default:
			return nil, fmt.Errorf("%w: %.80q is no strategy and no scenario; `go run ./loadtest step` lists them", ErrUnknown, name)
		}
	}
	return chosen, nil
}

// hold plays all, Parallel at a time. A play that could not be held is one that ended unexpectedly; only the end of ctx
// is an error.
func (c Command) hold(ctx context.Context, player *Player, chosen []*series, progress func(string)) error {
	var todo []*series
	for _, s := range chosen {
		todo = append(todo, slices.Repeat([]*series{s}, s.times)...)
	}
	// Plays in which a lock expires take longest; they begin first.
	slices.SortStableFunc(todo, func(a, b *series) int { return cmp.Compare(a.in.pace.ttl, b.in.pace.ttl) })
	var group errgroup.Group
	group.SetLimit(c.Parallel)
	var mu sync.Mutex
	held := 0
	for _, s := range todo {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			play, err := player.Play(ctx, s.strategy, s.in.Name)
			if err != nil {
				play.Error = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			if s.shown.Strategy == "" || !play.Expected && s.unexpected == 0 {
				s.shown = play
			}
			if !play.Expected {
				s.unexpected++
			}
			if held++; held%50 == 0 {
				progress(fmt.Sprintf("%d of %d plays", held, len(todo)))
			}
			return nil
		})
	}
	_ = group.Wait()
	return context.Cause(ctx)
}

func (c Command) save(stdout io.Writer, plays []Play) error {
	if c.JSON == "" {
		return nil
	}
	text, err := json.MarshalIndent(struct {
		Plays []Play `json:"plays"`
	}{plays}, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if c.JSON == "-" {
		_, err = stdout.Write(text)
		return err
	}
	return os.WriteFile(c.JSON, text, 0o644) //nolint:gosec // a report is no secret
}

// list says what can be named.
func list(out io.Writer) {
	fmt.Fprint(out, "Scenarios:\n")
	for _, in := range Scenarios() {
		fmt.Fprintf(out, "  %-14s %s\n", in.Name, in.Title)
	}
	fmt.Fprint(out, "\nWrong strategies, each with the scenario that it fails:\n")
	for _, m := range Mistakes() {
		fmt.Fprintf(out, "  %-22s %s\n", m.Strategy, m.Scenario)
	}
	fmt.Fprint(out, "\nPlay one: go run ./loadtest step none. All: go run ./loadtest step all. More: --help.\n")
}
