package step

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/shops"
)

// runExplore returns what a command prints.
func runExplore(t *testing.T, c Explore) (string, error) {
	t.Helper()
	c.Buyers, c.Units, c.Preemptions, c.Lines = max(c.Buyers, 2), max(c.Units, 1), 2, max(c.Lines, 1)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := c.Run(t.Context(), Output{Out: &out, Progress: func(string) {}})
	return out.String(), err
}

// --help: "a wrong strategy fails in some schedule and a right one in none". The numbers are those of docs/lessons.md, and
// each shortest schedule fails again, 5 times of 5.
func TestExplore_all(t *testing.T) {
	t.Parallel()
	testserver.NotUnderRace(t)
	out, err := runExplore(t, Explore{Name: all})
	row := regexp.MustCompile(`(?m)^(?:strategy +schedules .*|[a-z-]+(?: +\d+){3}\b.*)$`)
	_, page, _ := strings.Cut(readFile(t, lessons), "$ go run ./loadtest explore all\n")
	got, want := row.FindAllString(out, -1), row.FindAllString(page, -1)
	if err != nil || len(got) < 10 || !slices.Equal(got, want) {
		t.Errorf("%v, got\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	player, replayed := newPlayer(t, shops.Instances{}), 0
	for _, schedule := range regexp.MustCompile(`[a-z-]+:\w+`).FindAllString(strings.Join(got, "\n"), -1) {
		replayed++
		for range 5 {
			if played, err := player.Play(t.Context(), schedule); err != nil || played.Passed || played.Schedule != schedule {
				t.Errorf("%s again: got %v, passed %v in %s", schedule, err, played.Passed, played.Schedule)
			}
		}
	}
	if want := len(Lessons()) - 1; replayed != want { // one strategy has two lessons
		t.Errorf("replayed %d schedules, want %d", replayed, want)
	}
}

// The shortest schedule that fails is shown, and fails again.
func TestExplore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		crash      bool
		needsCrash bool
		want       []string
	}{
		{"none", false, false, []string{"5 of 5 schedules, 4 oversold, 0 undersold", "--schedule none:Aba\n", "^-- here it goes wrong", "2 sold of 1 unit"}},
		{"conditional", false, false, []string{"5 of 5 schedules, 0 oversold, 0 undersold"}},
		{"short-lease", false, true, []string{"0 oversold, 0 undersold", "add --crash"}},
		{"release-before-commit", false, false, []string{"--schedule release-before-commit:AAAAAbab\n"}},
		{"setex", false, false, []string{"--schedule setex:AAba\n", "2 sold of 1 unit"}},
		{"setnx-expire", true, false, []string{"2 undersold", "--schedule setnx-expire:Abxa\n", "B: waits for ever", "0 sold of 1"}},
		{"get-then-del", true, false, []string{"--schedule get-then-del:AAtaba\n", "-- the lock runs out ---"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := runExplore(t, Explore{Name: c.name, Bounds: Bounds{Crash: c.crash}})
			for _, want := range c.want {
				if (err != nil) != c.needsCrash || !strings.Contains(out, want) {
					t.Errorf("got %v, want %q in\n%s", err, want, out)
				}
			}
		})
	}
}

// Over a write without a guard, each defect of a lock is found without being told where: among the schedules in which it
// fails is one that the same strategy survives without the defect. Of a lock that is not renewed, time alone tells.
func TestExplore_seededDefects(t *testing.T) {
	t.Parallel()
	testserver.NotUnderRace(t)
	player := newPlayer(t, shops.Instances{})
	const sound = "redlock-unguarded" // without a fault, in all schedules
	for _, c := range []struct {
		defect, sound string
		bounds        Bounds
	}{
		{"release-before-commit", sound, Bounds{Buyers: 2, Units: 1, Preemptions: 2, Crash: false}},
		{"read-before-lock", sound, Bounds{Buyers: 2, Units: 1, Preemptions: 2, Crash: false}}, // the lock is taken after the read
		{"blind-del", "short-lease", Bounds{Buyers: 3, Units: 2, Preemptions: 2, Crash: true}}, // the owner is not compared
	} {
		t.Run(c.defect, func(t *testing.T) {
			t.Parallel()
			got, err := player.Explore(t.Context(), c.defect, c.bounds, func(int, int) {})
			if err != nil {
				t.Fatal(err)
			}
			slices.Reverse(got.Failed) // the longest first: in the shortest, a lock that runs out is enough
			survives := func(schedule string) bool {
				other, err := player.PlayLoose(t.Context(), c.sound+strings.TrimPrefix(schedule, c.defect))
				if err != nil {
					t.Errorf("%s with %s: %v", schedule, c.sound, err)
				}
				return other.Passed
			}
			if !slices.ContainsFunc(got.Failed, survives) {
				t.Errorf("%s, in which %s fails as well", got.counts(""), c.sound)
			}
		})
	}
	for schedule, passes := range map[string]bool{sound + ":AAwaba": true, "short-lease:AAwaba": false} { // renewal is forgotten
		if got, err := player.PlayLoose(t.Context(), schedule); err != nil || got.Passed != passes {
			t.Errorf("%s: got %v and %q, want passed %v", schedule, err, got.Outcome, passes)
		}
	}
}

// Three buyers, each at an instance of its own: the last waits its turn.
func TestExplore_threeBuyers(t *testing.T) {
	t.Parallel()
	out, err := runExplore(t, Explore{Name: "redis", Bounds: Bounds{Buyers: 3}})
	if err != nil || !strings.Contains(out, " schedules, 0 oversold, 0 undersold") {
		t.Errorf("got %v and\n%s", err, out)
	}
	for _, schedule := range []string{"redis:xa", "none:xa", "conditional:xab"} { // a buyer that dies first leaves the unit to the other
		out, err := runExplore(t, Explore{Schedule: schedule})
		if err != nil || !strings.Contains(out, "1 sold of 1 unit. A: died; B: 201: order placed.") {
			t.Errorf("%s: got %v and\n%s", schedule, err, out)
		}
	}
	out, err = runExplore(t, Explore{Schedule: "none:ABCabc"})
	if err != nil || !strings.Contains(out, "3 sold of 1 unit") {
		t.Errorf("got %v and\n%s", err, out)
	}
}

// Two requests in one instance, where a batch sells to both and a crash ends both, and orders of two SKUs, named in
// opposite order: a right strategy fails in no schedule. In one instance a mutex is enough.
func TestExplore_arrangements(t *testing.T) {
	t.Parallel()
	together, lines, opposite := Arrangement{1, false, true}, Arrangement{2, false, false}, Arrangement{2, true, true}
	for _, c := range []struct {
		name   string
		bounds Bounds
		want   string
	}{
		{"lanes", Bounds{Crash: true, Buyers: 3, Arrangement: together}, " schedules, 0 oversold, 0 undersold"},
		{"redis", Bounds{Arrangement: together}, " schedules, 0 oversold, 0 undersold"},
		{"mutex", Bounds{Arrangement: together}, " schedules, 0 oversold, 0 undersold"},
		{"none", Bounds{Arrangement: together}, "--schedule none,together:Aba\n"},
		{"lanes", Bounds{Arrangement: lines}, " schedules, 0 oversold, 0 undersold"},
		{"lanes", Bounds{Arrangement: opposite}, " schedules, 0 oversold, 0 undersold"},
		{"conditional", Bounds{Arrangement: opposite}, " schedules, 0 oversold, 0 undersold"},
		{"none", Bounds{Arrangement: opposite}, "--schedule none,opposite,together:Aba\n"},
	} {
		if out, err := runExplore(t, Explore{Name: c.name, Bounds: c.bounds}); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%s, %+v: got %v, want %q in\n%s", c.name, c.bounds, err, c.want, out)
		}
	}
	out, err := runExplore(t, Explore{Schedule: "lanes,together:a"})
	both := strings.Count(out, "read -> 1 unit") == 2 && strings.Count(out, "COMMIT") == 2
	if err != nil || !strings.Contains(out, "B, instance 1") || !both || strings.Count(out, " release lock:") != 1 {
		t.Errorf("got %v, want one batch, whose steps are in both columns, in\n%s", err, out)
	}
}

// "If ctx ends, the error is its cause, and what was found by then is returned as well."
func TestExplore_interrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	found, err := newPlayer(t, shops.Instances{}).Explore(ctx, "none", DefaultBounds(), func(played, _ int) {
		if played == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || len(found.Schedules) != 3 || !strings.Contains(found.counts(""), "interrupted after 3 schedules") {
		t.Errorf("got %v and %s", err, found.counts(""))
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
		"more buyers":     func(c *Explore) { c.Name, c.Schedule = "", "redis*2:Axab" },
		"--units 3":       func(c *Explore) { c.Units = 3 },
		"--lines 3":       func(c *Explore) { c.Lines = 3 },
		"--opposite":      func(c *Explore) { c.Opposite = true },
		"leave out":       func(c *Explore) { c.Name, c.Schedule, c.Crash = "", "none:ABab", true },
		"--buyers 4":      func(c *Explore) { c.Buyers = 4 },
		"--preemptions 5": func(c *Explore) { c.Preemptions = 5 },
		"xa, ta and wa":   func(c *Explore) { c.Name, c.Schedule = "", "none:ABd" },
		"A, a, xa, ta":    func(c *Explore) { c.Name, c.Schedule = "", "none:ABx" },
		"such as none:AB": func(c *Explore) { c.Name, c.Schedule = "", "none" },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestParseSchedule(t *testing.T) {
	t.Parallel()
	strategy, p, err := parseSchedule("get-then-del*2:AAtabxcCwa")
	want := []act{{steps, 0}, {steps, 0}, {expires, 0}, {runs, 1}, {dies, 2}, {steps, 2}, {works, 0}}
	if err != nil || strategy != "get-then-del" || p.Buyers != 3 || p.Units != 2 || !slices.Equal(p.acts, want) {
		t.Errorf("got %s, %+v, %v", strategy, p, err)
	}
}
