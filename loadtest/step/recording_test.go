package step

import (
	"io"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/shops"
)

// A step of a lesson shows what was recorded until then, without random owners and times, and each
// lesson ends as its text says.
func TestPlayer_Record(t *testing.T) {
	t.Parallel()
	player := newPlayer(t, shops.Servers{})
	strategies, err := player.Strategies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unreadable := regexp.MustCompile(`\d{10}|\b[A-Z2-7]{6}…`)
	for _, l := range playable(Lessons(), strategies, Output{Out: io.Discard}) {
		r, err := player.Record(t.Context(), l)
		if err != nil {
			t.Errorf("%s: %v", l.Name, err)
			continue
		}
		for step := range r.Mistake {
			for _, e := range slices.Concat(r.Mistake[step].Events, r.Remedy[step].Events) {
				if e.Act >= step {
					t.Errorf("%s, step %d: has an event of step %d", l.Name, step, e.Act+1)
				}
				if text := e.Text + " " + e.Answer; unreadable.MatchString(text) {
					t.Errorf("%s, step %d: unreadable: %s", l.Name, step, text)
				}
			}
		}
		wrong, right := r.Mistake[len(r.Mistake)-1], r.Remedy[len(r.Remedy)-1]
		if wrong.Passed || !wrong.Over || wrong.Wrong < 0 || !right.Passed || right.Saved < 0 {
			t.Errorf("%s: the mistake passed %v, wrong at %d; the remedy passed %v, saved at %d", l.Name, wrong.Passed, wrong.Wrong, right.Passed, right.Saved)
		}
	}
}

// Each option of a question has its reason, and no reason is given twice.
func TestLessons_options(t *testing.T) {
	t.Parallel()
	reasons := map[string]bool{}
	for _, l := range Lessons() {
		for _, o := range l.Options {
			if o.Reason == "" || reasons[o.Reason] {
				t.Errorf("%s: %q: reason %q is missing, or another's", l.Name, o.Text, o.Reason)
			}
			reasons[o.Reason] = true
		}
	}
}

// An act of the schedule begins and ends at the same time on both sides; what comes after the schedule belongs to its last act.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	of := func(letters ...int) (all []decision) {
		for _, letter := range letters {
			all = append(all, decision{of: letter})
		}
		return all
	}
	for _, c := range []struct {
		left, right []decision
		want        []int
	}{
		{of(0, 1, 1, 2), of(0, 1, 1, 2), []int{0, 1, 2, 3, 4}},
		{of(0, 1, 1, 1, 1, 2), of(0, 1, 1, 2), []int{0, 1, 2, 2, 3, 3, 4}},
		{of(0, 1, 1, 2), of(0, 1, 1, 1, 1, 2, 3, 3), []int{0, 1, 3, 5, 8}},
		{of(0, 1, 2), of(0, 2), []int{0, 1, 1, 2}}, // the remedy has no place for an act
		{of(0, 2), of(0, 1, 2), []int{0, 1, 3}},
	} {
		if diff := cmp.Diff(c.want, sideBySide(c.left, c.right)); diff != "" {
			t.Errorf("%v beside %v (-want +got):\n%s", c.left, c.right, diff)
		}
	}
}
