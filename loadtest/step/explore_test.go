package step

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/shops"
)

var whole = flag.Bool("all", false, "explore all schedules with two switches, as the command does, and not those with one")

// runExplore returns what a command prints.
func runExplore(t *testing.T, c Explore) (string, error) {
	t.Helper()
	switches := 1
	if *whole {
		switches = 2
	}
	c.Buyers, c.Units, c.Preemptions = max(c.Buyers, 2), max(c.Units, 1), max(c.Preemptions, switches)
	if c.Schedule != "" {
		c.Bounds = DefaultBounds()
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := c.Run(t.Context(), Output{Out: &out, Progress: func(string) {}})
	return out.String(), err
}

// --help: "a wrong strategy fails in some schedule and a right one in none". With -all, the numbers are those of
// docs/lessons.md. Each shortest schedule fails again, 5 times of 5.
func TestExplore_all(t *testing.T) {
	t.Parallel()
	testserver.NotUnderRace(t)
	out, err := runExplore(t, Explore{Name: all})
	row := regexp.MustCompile(`(?m)^(?:strategy +schedules .*|[a-z-]+(?: +\d+){3}\b.*)$`)
	_, page, _ := strings.Cut(readFile(t, lessons), "$ go run ./loadtest explore all\n")
	got, want := row.FindAllString(out, -1), row.FindAllString(page, -1)
	if err != nil || len(got) != len(want) || *whole && !slices.Equal(got, want) {
		t.Errorf("%v, (-got +page, of two switches):\n%s", err, cmp.Diff(got, want))
	}
	player, replayed := newPlayer(t, shops.Servers{}), 0
	for _, schedule := range regexp.MustCompile(`[a-z-]+:\w+`).FindAllString(strings.Join(got, "\n"), -1) {
		replayed++
		for range 5 {
			if played, err := player.Play(t.Context(), schedule); err != nil || played.Passed || played.Schedule != schedule {
				t.Errorf("%s again: got %v, passed %v in %s", schedule, err, played.Passed, played.Schedule)
			}
		}
	}
	if want := len(Lessons()) - 2; replayed != want { // one strategy has two lessons, one needs MySQL
		t.Errorf("replayed %d schedules, want %d", replayed, want)
	}
}

// The shortest schedule that fails is shown, and fails again.
func TestExplore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		bounds     Bounds
		needsCrash bool
		want       []string
	}{
		{"none", Bounds{Preemptions: 2}, false, []string{"5 of 5 schedules, 4 oversold, 0 undersold", "As designed: none is wrong, and fails in 4 of 5 schedules.\n", "--schedule none:Aba\n", "^-- here it goes wrong", "2 sold of 1 unit"}},
		{"conditional", Bounds{Preemptions: 2}, false, []string{"5 of 5 schedules, 0 oversold, 0 undersold", "As designed: conditional is correct in all 5 schedules.\n"}},
		{"short-lease", Bounds{}, true, []string{"0 oversold, 0 undersold", "add --crash"}},
		{"release-before-commit", Bounds{}, false, []string{"--schedule release-before-commit:AAAAAbab\n"}},
		{"setex", Bounds{}, false, []string{"--schedule setex:AAba\n", "2 sold of 1 unit"}},
		{"setnx-expire", Bounds{Crash: true}, false, []string{" undersold", "--schedule setnx-expire:A", "B: waits for ever", "0 sold of 1"}},
		{"get-then-del", Bounds{Crash: true}, false, []string{"--schedule get-then-del:AAtaba\n", "-- the lock runs out ---"}},
		{"redis", Bounds{Buyers: 3}, false, []string{" schedules, 0 oversold, 0 undersold"}}, // the last waits its turn
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := runExplore(t, Explore{Name: c.name, Bounds: c.bounds})
			for _, want := range c.want {
				if (err != nil) != c.needsCrash || !strings.Contains(out, want) {
					t.Errorf("got %v, want %q in\n%s", err, want, out)
				}
			}
		})
	}
	for schedule, want := range map[string]string{ // a buyer that dies first leaves the unit to the other
		"redis:xa": "1 sold of 1 unit. A: died; B: 201: order placed.", "none:xa": "1 sold of 1 unit. A: died; B: 201: order placed.",
		"conditional:xab": "1 sold of 1 unit. A: died; B: 201: order placed.", "none:ABCabc": "3 sold of 1 unit",
	} {
		if out, err := runExplore(t, Explore{Schedule: schedule}); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: got %v, want %q in\n%s", schedule, err, want, out)
		}
	}
}

// The errors are "if ctx ends, its cause".
func TestExplore_interrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	_, err := newPlayer(t, shops.Servers{}).Explore(ctx, "none", DefaultBounds(), func(int, int) { cancel(cause) })
	if !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

func TestExplore_Validate(t *testing.T) {
	t.Parallel()
	good := Explore{Name: "none", Bounds: DefaultBounds()}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Explore){
		"name a strategy": func(c *Explore) { c.Name = "" },
		"or a --schedule": func(c *Explore) { c.Schedule = "none:ABab" },
		"--units 2":       func(c *Explore) { c.Units = 2 },
		"leave out":       func(c *Explore) { c.Name, c.Schedule, c.Crash = "", "none:ABab", true },
		"xa, ta and wa":   func(c *Explore) { c.Name, c.Schedule = "", "none:ABd" },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
