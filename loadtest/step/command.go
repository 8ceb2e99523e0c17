package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// Command is what the user chose of `loadtest step`.
type Command struct {
	Name string `arg:"" optional:"" help:"A lesson, a strategy, or 'all'. Without one, the lessons are listed."`

	Times int    `default:"1" help:"Play each this many times (1 to 1000), and demand that each ends as it should."`
	JSON  string `name:"json" placeholder:"FILE" help:"Write the plays with all their events as JSON too; '-' for stdout, everything else then goes to stderr."`
	lang.Flag
}

// About stands above the flags in the help.
const About = `Plays a lesson: two or three buyers against each other, step by step, the same way every time.

Each buyer uses an instance of the shop of its own. A schedule says whose request takes the next step, whose process dies, and
whose lock runs out. The timeline shows what each of them did and when, where it went wrong, why, and what a right strategy
does in the same schedule.`

// Footer stands below the flags in the help.
func (Command) Footer() string {
	return `
Examples:
  go run ./loadtest step                    the lessons
  go run ./loadtest step none               the lost update, line by line, then its remedy
  go run ./loadtest step get-then-del       a lock that is released too late
  go run ./loadtest step redis              a right strategy in the schedules of all lessons
  go run ./loadtest step all --times 20     everything, 20 times: the same outcome 20 times
  go run ./loadtest step all --servers docker

A timeline reads from top to bottom; the first column is milliseconds since the play began. What A's request did is on the
left, B's in the middle: HTTP, Redis commands and SQL with their answers, and the steps of the order.

Exit code: 0 if every wrong strategy failed in its lesson and every right one passed in all, each time; 1 if not, or if a
schedule could not be played; 2 if the flags make no sense.
`
}

// all is the name of everything there is.
const all = "all"

// Validate returns the first flag that asks for what cannot be.
func (c Command) Validate() error {
	const maxTimes = 1000
	switch {
	case c.Times < 1 || c.Times > maxTimes:
		return fmt.Errorf("--times %d: want 1 to %d", c.Times, maxTimes)
	case c.Name == "" && (c.Times > 1 || c.JSON != ""):
		return errors.New("name what to play: a strategy, or 'all'")
	}
	return nil
}

// Output is where a Command writes.
type Output struct {
	Out      io.Writer // timelines and tables
	Lang     string    // of the explanations; English if it is empty
	Colour   bool      // of Out
	JSON     io.Writer // for --json -
	Progress func(line string)
}

// series is a schedule that is played a number of times.
type series struct {
	lesson     Lesson
	schedule   string // with the lesson's strategy, or with a right one
	right      bool
	shown      Position // the first that ended unexpectedly, or else the first of all
	unexpected int      // how many did
}

// Run plays what was named, in shops that use the servers of from. A name that cannot be played is an ErrUnknown or
// ErrNotApplicable. Otherwise the error says how many plays ended unexpectedly.
func (c Command) Run(ctx context.Context, from shops.Instances, out Output) (err error) {
	if c.Name == "" {
		out.list()
		return nil
	}
	player, began := NewPlayer(from), time.Now()
	defer func() { err = errors.Join(err, player.Close(context.WithoutCancel(ctx))) }()
	strategies, err := player.Strategies(ctx)
	if err != nil {
		return err
	}
	chosen := c.choose(strategies)
	if len(chosen) == 0 {
		_, err := player.strategy(ctx, c.Name)
		return err
	}
	if err := c.play(ctx, player, chosen, out.Progress); err != nil {
		return err
	}
	unexpected, positions := 0, []Position{}
	for _, s := range chosen {
		unexpected, positions = unexpected+s.unexpected, append(positions, s.shown)
		if c.Name != all {
			out.whole(s.shown)
		}
	}
	if c.Name == all {
		out.table(chosen)
		fmt.Fprintf(out.Out, "%d plays in %.1f s; %d unexpected results.\n", len(chosen)*c.Times, time.Since(began).Seconds(), unexpected)
	}
	if err := c.save(out.JSON, positions); err != nil {
		return err
	}
	if unexpected > 0 {
		return fmt.Errorf("%d of %d plays ended unexpectedly", unexpected, len(chosen)*c.Times)
	}
	return nil
}

// choose returns what is played: a wrong strategy in its lesson, followed by the remedy; a right one in all lessons;
// everything.
func (c Command) choose(strategies []shopclient.Strategy) (chosen []series) {
	for _, l := range Lessons() {
		available := slices.ContainsFunc(strategies, func(s shopclient.Strategy) bool { return s.Name == l.strategy() && s.Available })
		if available && (c.Name == all || c.Name == l.Name) {
			chosen = append(chosen, series{lesson: l, schedule: l.Schedule})
		}
		for _, s := range strategies {
			if s.PromisesCorrect && s.Available && (c.Name == all || c.Name == s.Name || c.Name == l.Name && s.Name == l.Remedy) {
				chosen = append(chosen, series{lesson: l, schedule: l.with(s.Name), right: true})
			}
		}
	}
	return chosen
}

// play plays all, several at a time: some are about time, and pass it.
func (c Command) play(ctx context.Context, player *Player, chosen []series, progress func(string)) error {
	const parallel = 8
	var played atomic.Int32
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range chosen {
		s := &chosen[i]
		group.Go(func() error {
			if err := s.play(ctx, player, c.Times); err != nil {
				return fmt.Errorf("%s: %w", s.schedule, err)
			}
			if n := played.Add(1); n%20 == 0 {
				progress(fmt.Sprintf("%d of %d schedules", n, len(chosen)))
			}
			return nil
		})
	}
	return group.Wait()
}

func (s *series) play(ctx context.Context, player *Player, times int) error {
	for range times {
		play := player.Play
		if s.right {
			play = player.PlayLoose
		}
		now, err := play(ctx, s.schedule)
		if err != nil {
			return err
		}
		expected := now.Over && now.Passed == s.right
		if s.shown.Schedule == "" || !expected && s.unexpected == 0 {
			s.shown = now
		}
		if !expected {
			s.unexpected++
		}
	}
	return nil
}

func (c Command) save(stdout io.Writer, plays []Position) error {
	if c.JSON == "" {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"plays": plays}, "", "  ")
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
func (o Output) list() {
	fmt.Fprintln(o.Out, lang.Text(o.Lang, "Lessons, in the order in which people make the mistakes:"))
	for i, l := range Lessons() {
		fmt.Fprintf(o.Out, "  %2d  %-22s %s\n", i+1, l.Name, lang.Text(o.Lang, l.Title))
	}
	fmt.Fprintf(o.Out, "\n%s\n", lang.Text(o.Lang, "Play one: go run ./loadtest step none. All: go run ./loadtest step all. More: --help."))
}
