package step

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"example.com/shop/internal/lab"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

// newPlayer returns a Player that is closed when the test ends.
func newPlayer(t *testing.T, on shops.Servers) *Player {
	t.Helper()
	p := NewPlayer(on)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// "A schedule ends the same way every time. The table Lessons has one for each wrong strategy, in which it fails, and a
// right strategy that passes in it." What docs/lessons.md shows is compared with the same plays. The
// question of a lesson is about the step that comes next.
func TestCommand_all(t *testing.T) {
	t.Parallel()
	player := newPlayer(t, shops.Servers{})
	strategies, err := player.Strategies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var printed, whole bytes.Buffer
	chosen := playable(Lessons(), strategies, Output{Out: &printed})
	lessons, err := play(t.Context(), player, chosen)
	if err = errors.Join(err, (&Command{Name: all}).report(lessons, 0, Output{Out: &printed})); err != nil {
		t.Fatalf("%v in\n%s", err, printed.String())
	}
	asked := map[string]string{
		"none": "A sql UPDATE skus ", "mutex": "B lock sku:", "setnx-expire": "B redis SETNX ", "setex": "B redis PSETEX ",
		"blind-del": "A redis DEL ", "get-then-del": "A redis DEL ", "short-lease": "A sql UPDATE skus ",
		"release-before-commit": "B lock sku:", "read-before-lock": "A lock sku:",
		"slow-work": "B redis SET ", "try-once": "B redis SET ", "reentrant": "A redis SET ", "reentrant-count": "A redis HINCRBY ",
		"mysql-lock-ownerless": "B sql INSERT INTO wrong_locks ", "redlock-unguarded": "A sql UPDATE skus ",
		"pre-deduct": "B redis EVAL take-units ", "pre-deduct-only": "B redis EVAL take-units ", "late-payment": "B sql SELECT ",
	}
	for _, l := range lessons {
		for _, p := range []Position{l.wrong, l.remedy} {
			Output{Out: &whole}.whole(p)
			if wrong := p.Schedule == l.Schedule; p.Passed == wrong || wrong != (p.Wrong >= 0) || wrong != (p.Remedy != "") || p.Why == "" {
				t.Errorf("%s: passed %v, wrong at %d, why %q, remedy %q", p.Schedule, p.Passed, p.Wrong, p.Why, p.Remedy)
			}
		}
		strategy, _, _ := strings.Cut(l.Schedule, ":")
		then, err := player.Position(t.Context(), strategy+":"+strings.Join(l.wrong.Acts[:l.Ask], ""))
		turn := l.wrong.Acts[l.Ask]
		i := slices.IndexFunc(then.Buyers, func(b Buyer) bool { return b.Name == turn })
		if err != nil || i < 0 || l.Right >= len(l.Options) || asked[l.Name] == "" ||
			!strings.HasPrefix(turn+" "+then.Buyers[i].Next, asked[l.Name]) {
			t.Errorf("%s: %v, the question is before %s of %+v, want before %q, the step of asked", l.Name, err, turn, then.Buyers, asked[l.Name])
		}
	}
	compareLessons(t, printed.String(), whole.String(), 2*len(chosen))
}

// Strategies that need a server of their own, on real servers: each survives all schedules, and what it
// stores is shown as text.
func TestCommand_servers(t *testing.T) {
	testserver.NotUnderRace(t)
	player := newPlayer(t, shops.Servers{MySQL: testserver.MySQL(t), ZooKeeper: testserver.ZooKeeper(t)})
	for name, command := range map[string]string{"mysql-lock": "UPDATE locks ", "zookeeper": "create /", "for-update": "UPDATE skus "} {
		got, err := player.Explore(t.Context(), name, Bounds{Buyers: 2, Units: 1, Preemptions: 2, Crash: true}, func(int, int) {})
		if err != nil || len(got.Failed) > 0 || len(got.Schedules) < 20 {
			t.Errorf("%s: %v, %s", name, err, got.counts(""))
		}
		p, err := player.Play(t.Context(), name+":Aba")
		if err != nil || !p.Passed {
			t.Errorf("%s: %v, %s", p.Schedule, err, p.outcome(""))
		}
		shown := ""
		for _, e := range p.Events {
			shown += e.Text + e.Answer + "\n"
		}
		if !strings.Contains(shown, command) || strings.Contains(shown, "[115 107") { // "sk" of sku, as bytes
			t.Errorf("%s: want %q and no bytes in\n%s", name, command, shown)
		}
	}
}

// Strategies that MySQL alone can play: the numbers are the same each time, and the lesson ends as it should. "Retries
// are off while a schedule is played, so that it always ends the same way."
func TestCommand_isolation(t *testing.T) {
	testserver.NotUnderRace(t)
	on := shops.Servers{MySQL: testserver.MySQL(t)}
	player := newPlayer(t, on)
	for name, want := range map[string]string{
		"get-lock":        "38 of 38 schedules, 0 oversold, 0 undersold or stuck",
		"serializable":    "23 of 23 schedules, 0 oversold, 0 undersold or stuck",
		"repeatable-read": "29 of 29 schedules, 7 oversold, 0 undersold or stuck",
		"late-payment":    "127 of 127 schedules, 8 oversold, 0 undersold or stuck",
	} {
		for range 2 {
			got, err := player.Explore(t.Context(), name, Bounds{Buyers: 2, Units: 1, Preemptions: 2, Crash: true}, func(int, int) {})
			if err != nil || got.counts("") != want {
				t.Errorf("%s: %v, got %s, want %s", name, err, got.counts(""), want)
			}
		}
	}
	var out bytes.Buffer
	err := (&Command{Name: "repeatable-read", Servers: on}).Run(t.Context(), Output{Out: &out, Progress: func(string) {}})
	if text := out.String(); err != nil || !strings.Contains(text, "-- here it goes wrong") || !strings.Contains(text, "Deadlock found") {
		t.Errorf("%v in\n%s", err, text)
	}
}

// docs/lessons.md: "If the lease of a batch of `lanes` has run out, and another instance has sold the SKU meanwhile,
// the batch sells what is left without a lease, and so without a fence: the row that the batch locks decides."
func TestCommand_withoutLease(t *testing.T) {
	testserver.NotUnderRace(t)
	player := newPlayer(t, shops.Servers{MySQL: testserver.MySQL(t)})
	for schedule, want := range map[string]string{
		"lanes*2:AAtabac": "2 of 2 units sold. A: 201: order placed; B: 201: order placed; C: 409: sold out.",
		"lanes:AAtaba":    "1 sold of 1 unit. A: 409: sold out; B: 201: order placed.",
	} {
		p, err := player.Play(t.Context(), schedule)
		if err != nil || !p.Passed || p.outcome("") != want {
			t.Errorf("%s: %v, got %q, want %q", schedule, err, p.outcome(""), want)
		}
		for _, e := range p.Events {
			fenced := strings.Contains(e.Text, "fence = ")
			if strings.HasPrefix(e.Text, "UPDATE skus ") && fenced != (e.Actor == "B") {
				t.Errorf("%s: %s sends %s", schedule, e.Actor, e.Text)
			}
		}
	}
	if !*whole {
		return
	}
	got, err := player.Explore(t.Context(), "lanes", Bounds{Buyers: 2, Units: 1, Preemptions: 2, Crash: true}, func(int, int) {})
	if count := "121 of 121 schedules, 0 oversold, 0 undersold or stuck"; err != nil || got.counts("") != count {
		t.Errorf("got %v, %s, want %s", err, got.counts(""), count)
	}
}

// "Each is a strategy of this repository": there is a lesson for each wrong strategy of the shop, and its remedy is a right
// one. A name that cannot be played is an error.
func TestLessons(t *testing.T) {
	t.Parallel()
	player := newPlayer(t, shops.Servers{})
	strategies, err := player.Strategies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var wrong, right, got []string
	for _, s := range strategies {
		if s.Designed {
			right = append(right, s.Name)
		} else {
			wrong = append(wrong, s.Name)
		}
	}
	for _, l := range Lessons() {
		got = append(got, l.Strategy())
		if !slices.Contains(right, l.Remedy) {
			t.Errorf("%s: the remedy %q is no right strategy", l.Name, l.Remedy)
		}
	}
	slices.Sort(got)
	slices.Sort(wrong)
	got = slices.Compact(got)
	if diff := cmp.Diff(wrong, got); diff != "" {
		t.Errorf("lessons (-want +got):\n%s", diff)
	}
	for _, name := range []string{"nonsense", "redis"} {
		if err := (&Command{Name: name}).Run(t.Context(), Output{}); !errors.Is(err, ErrSchedule) {
			t.Errorf("%s: got %v, want %v", name, err, ErrSchedule)
		}
	}
	for name, want := range map[string]string{
		"nonsense:ab": "is not one of", "zookeeper:ab": "needs a ZooKeeper", "none:aA": "cannot do that",
		"none": "want a strategy and letters", "none*9:ab": "up to 2 units",
	} {
		if _, err := player.Play(t.Context(), name); !errors.Is(err, ErrSchedule) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %v with %q", name, err, ErrSchedule, want)
		}
	}
}

// "What can be done next?" after each act of a game, and what the buyers believe.
func TestPlayer_Position(t *testing.T) {
	t.Parallel()
	player := newPlayer(t, shops.Servers{})
	one := int64(1)
	for name, want := range map[string]Position{
		"redis:": {Schedule: "redis:", Next: []string{"A"}, Stock: Stock{Available: 1}, Buyers: []Buyer{
			{Name: "A", State: Ready, Next: "lock sku:mug"}, {Name: "B", State: Ready, Next: "lock sku:mug"},
		}},
		"redis:AAB": {Schedule: "redis:AAb", Next: []string{"A", "xa", "ta"}, Stock: Stock{Available: 1}, Buyers: []Buyer{
			{Name: "A", State: Ready, Next: "sql BEGIN", Holds: true, Read: &one}, {Name: "B", State: Waits},
		}},
		"redis:AAta": {Schedule: "redis:AAta", Next: []string{"A", "B", "xa"}, Stock: Stock{Available: 1}, Buyers: []Buyer{
			{Name: "A", State: Ready, Next: "sql BEGIN", Holds: true, Mistaken: true, Read: &one}, {Name: "B", State: Ready, Next: "lock sku:mug"},
		}},
		"none:Ab": {Schedule: "none:Ab", Next: []string{"A", "xa"}, Stock: Stock{0, 1, 0}, Sold: 1, Buyers: []Buyer{
			{Name: "A", State: Ready, Next: "sql BEGIN", Read: &one}, {Name: "B", State: Done, Read: &one, Answer: "201: order placed"},
		}},
		"none:Aba": {Schedule: "none:Aba", Next: []string{}, Stock: Stock{0, 1, 0}, Sold: 2, Over: true, Buyers: []Buyer{
			{Name: "A", State: Done, Read: &one, Answer: "201: order placed"}, {Name: "B", State: Done, Read: &one, Answer: "201: order placed"},
		}},
	} {
		got, err := player.Position(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range got.Buyers {
			b := &got.Buyers[i]
			if b.Instance != i+1 {
				t.Errorf("%s: %s is at instance %d", name, b.Name, b.Instance)
			}
			b.Line, b.Instance = "", 0
			if before, _, found := strings.Cut(b.Next, "mug-"); found {
				b.Next = before + "mug"
			}
		}
		is := Position{
			Schedule: got.Schedule, Next: got.Next, Stock: got.Stock, Sold: got.Sold, Over: got.Over, Buyers: got.Buyers,
		}
		if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A Player "plays at most eight schedules at a time", and answers everyone who asks for one.
func TestPlayer_Position_crowd(t *testing.T) {
	t.Parallel()
	player := newPlayer(t, shops.Servers{})
	var crowd sync.WaitGroup
	for range 40 {
		crowd.Go(func() {
			if got, err := player.Position(t.Context(), "none:Aba"); err != nil || got.Sold != 2 {
				t.Errorf("got %d sold, %v, want 2", got.Sold, err)
			}
		})
	}
	crowd.Wait()
	if open := len(player.idle); open > 8 {
		t.Errorf("%d shops are open, want 8 at most", open)
	}
}

// The event that goes wrong is "the write that sells one unit too many", and not a write that was rolled back.
func TestPlayer_Position_wrong(t *testing.T) {
	t.Parallel()
	got, err := newPlayer(t, shops.Servers{}).Position(t.Context(), "none:ABCAAxabc")
	if err != nil || got.Wrong < 0 || got.Events[got.Wrong].Actor != "C" {
		t.Errorf("got %d of %v, %v, want an event of C", got.Wrong, got.Events, err)
	}
}

// The lock's store is asked for the holder, whatever the buyers believe.
func TestPlayer_Position_lock(t *testing.T) {
	t.Parallel()
	player := newPlayer(t, shops.Servers{})
	for name, want := range map[string]struct {
		holder        string
		free, endless bool
		believes      string // and is wrong
	}{
		"none:A":                       {free: true},
		"redis:AA":                     {holder: "A"},
		"redlock:AA":                   {holder: "A"},
		"setnx-expire:Axa":             {holder: "A", endless: true},
		"reentrant:ab":                 {holder: "A"}, // both wait for ever
		"reentrant-count:AAAA":         {holder: "A"},
		"reentrant-count:ABBBBA":       {holder: "BA"},
		"mysql-lock-ownerless:AA":      {endless: true},
		"blind-del*2:AAAAAtaB":         {holder: "B", believes: "A"},
		"blind-del*2:AAAAAtaBA":        {free: true, believes: "B"},
		"short-lease:AAtab":            {free: true, believes: "A"},
		"reentrant:Awa":                {holder: "A"},
		"release-before-commit:AAAAAB": {holder: "B"},
	} {
		p, err := player.Position(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		is, believes := Lock{}, ""
		if p.Lock != nil {
			is = *p.Lock
		}
		for _, b := range p.Buyers {
			if b.Mistaken {
				believes += b.Name
			}
		}
		if strings.Join(is.Holders, "") != want.holder || (is.Owner == "") != want.free ||
			(is.TTL == 0) != (want.free || want.endless) || believes != want.believes {
			t.Errorf("%s: got %+v, and %q believes it has the lock; want %+v", name, is, believes, want)
		}
	}
	if _, err := player.Position(t.Context(), "reentrant:Ata"); !errors.Is(err, ErrSchedule) { // it outlives its waiters
		t.Errorf("got %v, want %v", err, ErrSchedule)
	}
}

// A shop that is too busy for a move is asked again.
func TestUntilAvailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		err := untilAvailable(t.Context(), func() error {
			if asked++; asked < 3 {
				return shopclient.ErrUnavailable
			}
			return nil
		})
		if err != nil || asked != 3 {
			t.Errorf("got %v after %d requests, want none after 3", err, asked)
		}
		err = untilAvailable(t.Context(), func() error { return shopclient.ErrUnavailable })
		if !errors.Is(err, shopclient.ErrUnavailable) {
			t.Errorf("after %v: got %v", settleBound, err)
		}
	})
}

// A play is printed as in the golden file; -rewrite rewrites the file.
func TestOutput_whole(t *testing.T) {
	t.Parallel()
	at := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	play := Position{
		Schedule: "get-then-del*2:AtaBab", Units: 2, Sold: 3, Wrong: 5, Why: "A sent its DEL late.",
		Remedy: "redis compares and deletes in one script.",
		Buyers: []Buyer{{Name: "A", Instance: 1, State: Waits}, {Name: "B", Instance: 2, State: Done, Answer: "201: order placed"}},
		Events: []Event{
			{At: at(0.7), Actor: "A", Kind: HTTP, Text: "POST /v1/orders", Noise: true},
			{At: at(2.5), Actor: "A", Kind: lab.KindRedis, Text: "SET wrong:get-then-del:sku:mug DQ4YXE… NX PX 1000", Answer: "OK"},
			{At: at(2.9), Actor: "A", Kind: lab.KindStep, Text: "lock-held"},
			{At: at(9.1), Actor: "A", Kind: Schedule, Text: lab.RunsOut},
			{At: at(1298.3), Actor: "B", Kind: lab.KindStep, Text: "read", Answer: "1 unit"},
			{At: at(1299.9), Actor: "A", Kind: lab.KindRedis, Text: "DEL wrong:get-then-del:sku:mug", Answer: "1"},
			{At: at(1308.2), Actor: "B", Kind: lab.KindSQL, Text: "UPDATE skus SET available=0,reserved=2 WHERE name = mug", Answer: "1 row"},
			{At: at(1308.9), Actor: "B", Kind: lab.KindSQL, Text: "COMMIT", Answer: "OK"},
			{At: at(1309.0), Actor: "B", Kind: Schedule, Text: "dies"},
			{At: at(1309.1), Actor: "B", Kind: HTTP, Text: "201: order placed"},
		},
	}
	var got, coloured bytes.Buffer
	Output{Out: &got}.whole(play)
	Output{Out: &coloured, Colour: true}.whole(play)
	play.Buyers = append(play.Buyers, Buyer{Name: "C", Instance: 3, State: Died})
	play.Events[4].Actor = "C"
	Output{Out: &got, Lang: "zh"}.whole(play)
	const golden = "testdata/whole.txt"
	if *rewrite {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for line := range strings.Lines(got.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 102 {
			t.Errorf("%d columns, want at most 102: %s", n, line)
		}
	}
	if strings.Contains(got.String(), "\x1b") || !strings.Contains(coloured.String(), "\x1b[31;1m") {
		t.Error("want colours where they are asked for, and only there")
	}
}
