package steps

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"example.com/shop/loadtest/shops"
)

func TestMain(m *testing.M) {
	if was, err := Child(os.Getenv, os.Stdin, os.Stdout); was {
		if err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, pairs int) *Player {
	t.Helper()
	p, err := Open(t.Context(), Options{Pairs: pairs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// doc.go: "A strategy ends in its own scenario the same way every time: the wrong one
// fails, the right ones pass." Each in each scenario, the wrong ones several times in
// their own.
func TestPlayer_Series(t *testing.T) {
	t.Parallel()
	p := open(t, 6)
	wishes := p.Wishes(1)
	for i, w := range wishes {
		if Failures()[w.Strategy] == w.Scenario {
			wishes[i].Times = 3
		}
	}
	plays, err := p.Series(t.Context(), wishes, func(played Play) {
		if !played.Expected {
			t.Errorf("%s in %s: %s\n%s", played.Strategy, played.Scenario, played.Outcome, brief(played.Events))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, played := range plays {
		if wrong := played.Wrong >= 0; played.Passed == wrong || wrong != (played.Remedy != "") || played.Why == "" {
			t.Errorf("%s in %s: passed %v, wrong at %d, why %q, remedy %q", played.Strategy, played.Scenario, played.Passed, played.Wrong, played.Why, played.Remedy)
		}
		if own := Failures()[played.Strategy] == played.Scenario; own {
			marked(t, played)
		}
	}
}

// marked: the event that is told to be the mistake is the one that the text is about.
func marked(t *testing.T, played Play) {
	t.Helper()
	want := map[string]string{
		"none": "A sql UPDATE skus", "mutex": "A sql UPDATE skus", "setex": "A sql UPDATE skus", "short-lease": "A sql UPDATE skus",
		"setnx-expire": "A schedule process killed", "release-before-commit": "B step read",
		"blind-del": "A redis DEL", "get-then-del": "A redis DEL",
	}[played.Strategy]
	e := played.Events[played.Wrong]
	if got := e.Actor + " " + e.Kind + " " + e.Text; !strings.HasPrefix(got, want) {
		t.Errorf("%s: marked %q, want %q", played.Strategy, got, want)
	}
}

// Every wrong strategy of the shop has its scenario and its lesson, and no other.
func TestFailures_areTheWrongOnes(t *testing.T) {
	t.Parallel()
	p := open(t, 1)
	var wrong []string
	for _, how := range p.Strategies() {
		if !how.Promises {
			wrong = append(wrong, how.Name)
		}
	}
	slices.Sort(wrong)
	if got := slices.Sorted(maps.Keys(Failures())); !slices.Equal(got, wrong) {
		t.Errorf("Failures: got %v, want %v", got, wrong)
	}
	if got := slices.Sorted(maps.Keys(lessons())); !slices.Equal(got, wrong) {
		t.Errorf("lessons: got %v, want %v", got, wrong)
	}
	for strategy, scenario := range Failures() {
		if _, known := find(scenario); !known {
			t.Errorf("%s: no scenario %q", strategy, scenario)
		}
	}
	for name, want := range map[[2]string]error{
		{"none", "crash"}: ErrNotApplicable, {"none", "nonsense"}: ErrUnknown, {"nobody", "crash"}: ErrUnknown, {"for-update", "lost-update"}: ErrNotApplicable,
	} {
		if _, err := p.Play(t.Context(), name[0], name[1]); !errors.Is(err, want) {
			t.Errorf("%v: got %v, want %v", name, err, want)
		}
	}
}

// doc.go: "No process outlives the Player, nor this process": it ends with its stdin,
// is killed at once, and a paused one is no exception.
func TestProcess_ends(t *testing.T) {
	t.Parallel()
	p, err := openPair(t.Context(), shops.Instances{}, quick)
	if err != nil {
		t.Fatal(err)
	}
	first := p.first
	if err := errors.Join(first.pause(), p.kill()); err != nil {
		t.Fatal(err)
	}
	<-first.ended
	if err := p.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := p.first
	if second.cmd.Process.Pid == first.cmd.Process.Pid {
		t.Error("the killed one was not started again")
	}
	if err := errors.Join(second.pause(), p.close(t.Context())); err != nil {
		t.Errorf("close of a paused one: %v", err)
	}
	select {
	case <-second.ended:
	default:
		t.Error("it runs on")
	}
}
