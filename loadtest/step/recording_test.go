package step

import (
	"io"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/shops"
)

// What stands on the board at each step of each lesson follows from what was recorded until then, and
// each lesson ends as its text says.
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
			t.Errorf("%s: the mistake passed %v, wrong at %d; the remedy passed %v, saved at %d",
				l.Name, wrong.Passed, wrong.Wrong, right.Passed, right.Saved)
		}
	}
}

// checkBoard compares the facts of a position with its events.
func checkBoard(t *testing.T, where string, p Position) {
	t.Helper()
	want := board(p)
	got := facts{Available: p.Stock.Available, Fence: p.Stock.Fence, Sold: p.Sold, States: map[string]string{}}
	for _, b := range p.Buyers {
		switch b.State {
		case Done:
			got.States[b.Name] = b.Answer
		case Died:
			got.States[b.Name] = Died
		}
		if held := heldBy(p.Events, b.Name); p.LockName != lab.CountLock && p.LockName != lab.HoldLock && held != b.Holds && b.State != Died {
			t.Errorf("%s: %s holds a lock: got %v, want %v", where, b.Name, b.Holds, held)
		}
		if b.State == Waits && p.Over && p.Lock != nil && p.Lock.Owner == "" {
			t.Errorf("%s: %s waits for ever, and the lock is free", where, b.Name)
		}
	}
	if p.Lock != nil {
		got.Held, got.Holders = p.Lock.Owner != "", strings.Join(slices.Sorted(slices.Values(p.Lock.Holders)), " ")
	} else {
		want.Held, want.Holders = false, ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: (-events +board):\n%s", where, diff)
	}
	for _, e := range p.Events {
		if text := e.Text + " " + e.Answer; regexp.MustCompile(`\d{10}|\b[A-Z2-7]{6}…`).MatchString(text) {
			t.Errorf("%s: unreadable: %s", where, text)
		}
	}
}

// facts are what a board shows of the stores, and how the buyers have ended.
type facts struct {
	Available, Fence, Sold int64
	Held                   bool   // the lock
	Holders                string // of the lock, if its store knows them
	States                 map[string]string
}

// board plays the events of a position once more, on a board of its own.
func board(p Position) facts {
	f := facts{Available: p.Units, States: map[string]string{}}
	number := func(text, pattern string) int64 {
		found := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if found == nil {
			return 0
		}
		n, _ := strconv.ParseInt(found[1], 10, 64)
		return n
	}
	commits, ended := map[string][]func(){}, map[string]bool{} // by buyer: what its transaction changes, whether its hold has ended
	holders := map[string]bool{}
	for _, e := range p.Events {
		e.Answer, _, _ = strings.Cut(e.Answer, " (") // how often
		later := func(change func()) { commits[e.Actor] = append(commits[e.Actor], change) }
		switch text := e.Text; {
		case e.Kind == HTTP && !strings.HasPrefix(text, "POST "):
			f.States[e.Actor] = text
		case e.Kind == HTTP:
			delete(f.States, e.Actor)
		case e.Kind == Schedule && text == "dies":
			f.States[e.Actor] = Died
		case e.Kind == Schedule && text == lab.HoldEnds:
			ended[e.Actor] = true
		case e.Kind == Schedule && (text == lab.RunsOut || p.Strategy == "short-lease"): // or the work takes longer than a lock lives
			clear(holders)
		case strings.HasPrefix(text, "UPDATE orders SET status = 'paid'") && ended[e.Actor]:
			later(func() { f.Sold++ })
		case text == "BEGIN", text == "ROLLBACK":
			commits[e.Actor] = nil
		case text == "COMMIT" && e.Answer == "OK":
			for _, change := range commits[e.Actor] {
				change()
			}
			commits[e.Actor] = nil
		case text == "INSERT INTO orders" && e.Answer != "":
			later(func() { f.Sold++ })
		case strings.HasPrefix(text, "UPDATE skus ") && e.Answer == "1 row":
			left, taken := number(text, `SET available = (\d+)`), number(text, `SET available = available - (\d+)`)
			back := number(text, `SET available = available \+ (\d+)`)
			later(func() {
				if f.Available += back - taken; back+taken == 0 {
					f.Available = left
				}
				f.Sold -= back
				f.Fence = max(f.Fence, number(text, ` fence = (\d+) `))
			})
		default:
			lockBy(e, holders)
		}
	}
	f.Held, f.Holders = len(holders) > 0, strings.TrimSpace(strings.Join(slices.Sorted(maps.Keys(holders)), " "))
	return f
}

// heldBy reports whether a buyer has a lock, as it believes: some take it twice.
func heldBy(events []Event, name string) bool {
	held := 0
	for _, e := range events {
		if e.Actor == name && e.Text == "lock-held" {
			held++
		}
		if e.Actor == name && e.Text == "released" {
			held--
		}
	}
	return held > 0
}

// lockBy notes who takes and gives back the lock.
func lockBy(e Event, holders map[string]bool) {
	command, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(e.Text, "EVALSHA "), "EVAL "), " ")
	switch command {
	case "SET", "SETNX", "PSETEX":
		if e.Answer == "OK" || e.Answer == "1" || e.Answer == "true" {
			clear(holders)
			holders[e.Actor] = true
		}
	case "acquire":
		if strings.HasPrefix(e.Answer, "yes") || e.Answer == "1" {
			clear(holders)
			holders[e.Actor] = true
		}
	case "HINCRBY":
		holders[e.Actor] = true
	case "INSERT": // into a table of locks, which does not know who
		if strings.Contains(e.Text, "locks") && e.Answer == "1 row" {
			holders[""] = true
		}
	case "DEL", "compare-and-delete", "release":
		if e.Answer == "1" {
			clear(holders)
		}
	}
}

// Each place of an answer is the right one equally often, each option has its reason, and no reason is given twice.
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

// An act of the schedule begins and ends at the same time on both sides; what comes after the schedule
// belongs to its last act.
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
