package step

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// Command is what the user chose of `loadtest step`.
type Command struct {
	Name string `arg:"" optional:"" help:"A lesson, or 'all'. Without one, the lessons are listed."`
	lang.Flag
	shops.Servers
}

// About stands above the flags in the help.
const About = `Plays a lesson: the concurrent requests of two or three buyers, step by step, the same way every time.

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
  go run ./loadtest step all                a line for each lesson
  go run ./loadtest step all --servers docker

A timeline reads from top to bottom; the first column is milliseconds since the play began. Each buyer has
a column, A's on the left: SQL and Redis commands with their answers, and the steps of the order.

Exit code: 0 if every wrong strategy failed in its lesson, and its remedy passed; 1 if not, or if a schedule could not be played;
2 if the flags make no sense.
`
}

// all is the name of everything there is.
const all = "all"

// Output is where a Command writes.
type Output struct {
	Out      io.Writer // timelines and tables
	Lang     string    // of the explanations; English if it is empty
	Colour   bool      // of Out
	Progress func(line string)
}

// played is the outcome of a lesson.
type played struct {
	Lesson
	wrong, remedy Position
}

// failed reports whether the lesson showed something else than it should.
func (p played) failed() bool { return p.wrong.Passed || !p.remedy.Passed }

// Validate returns what is wrong with the servers. kong calls it.
func (c *Command) Validate() error { return c.Check() }

// Run plays what was named, in shops that use the servers of the flags. A name that cannot be played is an ErrSchedule.
// Otherwise the error names the lessons that ended unexpectedly.
func (c *Command) Run(ctx context.Context, out Output) (err error) {
	began := time.Now()
	out.Lang = c.Lang
	if c.Name == "" {
		out.list()
		return nil
	}
	chosen := slices.DeleteFunc(Lessons(), func(l Lesson) bool { return c.Name != all && c.Name != l.Name })
	if len(chosen) == 0 {
		return fmt.Errorf("%w: %.80[2]q is no lesson; `go run ./loadtest step` lists them, "+
			"`go run ./loadtest explore --schedule %.80[2]s:ab` plays a strategy", ErrSchedule, c.Name)
	}
	player, closePlayer, err := openPlayer(ctx, &c.Servers, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closePlayer()) }()
	strategies, err := player.Strategies(ctx)
	if err != nil {
		return err
	}
	if c.Name == all {
		chosen = playable(chosen, strategies, out)
	}
	lessons, err := play(ctx, player, chosen)
	if err != nil {
		return err
	}
	return c.report(lessons, time.Since(began), out)
}

// playable returns the lessons whose strategies the shops have, and names the others.
func playable(lessons []Lesson, strategies []shopclient.Strategy, out Output) []Lesson {
	return slices.DeleteFunc(lessons, func(l Lesson) bool {
		i := slices.IndexFunc(strategies, func(s shopclient.Strategy) bool { return s.Name == l.Strategy() && !s.Available })
		if i >= 0 {
			out.notPlayed(l.Name, strategies[i].Reason)
		}
		return i >= 0
	})
}

func (o Output) notPlayed(name, reason string) {
	fmt.Fprintln(o.Out, lang.Text(o.Lang, "not played: %s: %s", name, lang.Text(o.Lang, reason)))
}

// openPlayer starts the servers that are asked for and returns a player that uses them. closeAll ends both.
func openPlayer(ctx context.Context, on *shops.Servers, out Output) (p *Player, closeAll func() error, err error) {
	stop, err := on.Start(ctx, out.Progress)
	if err != nil {
		return nil, nil, err
	}
	p = NewPlayer(*on)
	return p, func() error { return errors.Join(p.Close(), stop()) }, nil
}

// report writes the outcomes of the lessons. It returns the error of Run.
func (c *Command) report(lessons []played, took time.Duration, out Output) (err error) {
	if c.Name == all {
		out.table(lessons)
		fmt.Fprintln(out.Out, lang.Text(out.Lang, "%d lessons in %.1f s.", len(lessons), took.Seconds()))
	}
	for _, l := range lessons {
		if c.Name != all || l.failed() {
			out.whole(l.wrong)
			out.whole(l.remedy)
		}
		if l.failed() {
			err = errors.Join(err, fmt.Errorf("%s ended unexpectedly", l.Name))
		}
	}
	return err
}

// play plays all, several at a time.
func play(ctx context.Context, player *Player, chosen []Lesson) ([]played, error) {
	lessons := make([]played, len(chosen))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, l := range chosen {
		group.Go(func() error {
			wrong, err := player.Play(ctx, l.Schedule)
			if err != nil {
				return fmt.Errorf("%s: %w", l.Schedule, err)
			}
			remedy, err := player.PlayLoose(ctx, l.remedySchedule())
			if err != nil {
				return fmt.Errorf("%s: %w", l.remedySchedule(), err)
			}
			lessons[i] = played{l, wrong, remedy}
			return nil
		})
	}
	return lessons, group.Wait()
}

func (o Output) list() {
	fmt.Fprintln(o.Out, lang.Text(o.Lang, "Lessons, in the order in which people make the mistakes:"))
	for i, l := range Lessons() {
		fmt.Fprintf(o.Out, "  %2d  %-22s %s\n", i+1, l.Name, lang.Text(o.Lang, l.Title))
	}
	fmt.Fprintf(o.Out, "\n%s\n", lang.Text(o.Lang, "Play one: go run ./loadtest step none. All: go run ./loadtest step all. More: --help."))
}
