package step

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/servers"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file anew")

func TestMain(m *testing.M) {
	if was, err := Child(os.Getenv, os.Stdin, os.Stdout); was {
		if err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(testserver.Wrap(m))
}

// run returns what a command prints, and the plays of its JSON.
func run(t *testing.T, c Command, from shops.Instances) (string, []Play) {
	t.Helper()
	var printed, encoded bytes.Buffer
	var got struct{ Plays []Play }
	c.Times, c.Parallel, c.JSON = max(1, c.Times), 6, "-"
	err := c.Run(t.Context(), from, Output{Out: &printed, JSON: &encoded, Progress: func(string) {}})
	if err = errors.Join(err, json.Unmarshal(encoded.Bytes(), &got)); err != nil {
		t.Errorf("%v in\n%s", err, printed.String())
	}
	return printed.String(), got.Plays
}

// "A strategy ends in the scenario of its mistake the same way every time: the wrong one fails, the right ones pass."
// What docs/lessons.md shows is compared with the same plays.
func TestCommand_all(t *testing.T) {
	t.Parallel()
	printed, plays := run(t, Command{Names: []string{all}, Times: 3}, shops.Instances{})
	if !strings.Contains(printed, "; 0 unexpected results.") {
		t.Errorf("want no unexpected results in\n%s", printed)
	}
	marks := map[string]string{
		"none": "A sql UPDATE skus", "mutex": "A sql UPDATE skus", "setex": "A sql UPDATE skus", "short-lease": "A sql UPDATE skus",
		"setnx-expire": "A schedule process killed", "release-before-commit": "B step read",
		"blind-del": "A redis DEL", "get-then-del": "A redis DEL",
	}
	var whole bytes.Buffer
	for _, p := range plays {
		Output{Out: &whole}.whole(p)
		if wrong := p.Wrong >= 0; p.Passed == wrong || wrong != (p.Remedy != "") || p.Why == "" {
			t.Errorf("%s in %s: passed %v, wrong at %d, why %q, remedy %q", p.Strategy, p.Scenario, p.Passed, p.Wrong, p.Why, p.Remedy)
		}
		if fails(p.Strategy, p.Scenario) && p.Wrong >= 0 {
			e := p.Events[p.Wrong]
			if got := e.Actor + " " + e.Kind + " " + e.Text; !strings.HasPrefix(got, marks[p.Strategy]) {
				t.Errorf("%s: marked %q, want %q", p.Strategy, got, marks[p.Strategy])
			}
		}
	}
	compareLessons(t, printed, whole.String())
}

// Strategies that need a server of their own, on real ones: each passes in all that applies, and what it stores is
// shown as text.
func TestCommand_servers(t *testing.T) {
	from := shops.Instances{Servers: servers.Servers{MySQL: testserver.MySQL(t), ZooKeeper: testserver.ZooKeeper(t)}}
	printed, plays := run(t, Command{Names: []string{"mysql-lock", "zookeeper", "for-update"}}, from)
	if want := 5 + 5 + 2; len(plays) != want {
		t.Errorf("got %d plays, want %d", len(plays), want)
	}
	for _, p := range plays {
		if !p.Passed {
			t.Errorf("%s in %s: %s%s", p.Strategy, p.Scenario, p.Outcome, p.Error)
		}
		for _, e := range p.Events {
			if strings.Contains(e.Text+e.Answer, "[115 107") { // "sk" of sku, as bytes
				t.Errorf("%s in %s: bytes in %q", p.Strategy, p.Scenario, e.Text)
			}
		}
	}
	if !strings.Contains(printed, "FOR UPDATE") {
		t.Errorf("want a wait for a row in\n%s", printed)
	}
}

// The table has each wrong strategy of the shop once, and no other; a name that cannot be played is an error.
func TestMistakes(t *testing.T) {
	t.Parallel()
	player := NewPlayer(shops.Instances{})
	t.Cleanup(func() { closePlayer(t, player) })
	strategies, err := player.Strategies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var wrong, got []string
	for _, strategy := range strategies {
		if !strategy.PromisesCorrect {
			wrong = append(wrong, strategy.Name)
		}
	}
	for _, m := range Mistakes() {
		got = append(got, m.Strategy)
		if _, known := scenario(m.Scenario); !known {
			t.Errorf("%s: no scenario %q", m.Strategy, m.Scenario)
		}
	}
	slices.Sort(got)
	slices.Sort(wrong)
	if !slices.Equal(got, wrong) {
		t.Errorf("mistakes: got %v, want %v", got, wrong)
	}
	for name, want := range map[string]error{"nonsense": ErrUnknown, "for-update": ErrNotApplicable, "redis": nil, "crash": nil} {
		if _, err := (Command{Names: []string{name}}).choose(strategies); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	none := shopclient.Strategy{Name: "none", Available: true}
	if _, err := player.Play(t.Context(), none, "crash"); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("none in crash: got %v, want %v", err, ErrNotApplicable)
	}
}

// A play that cannot be held is one that ended unexpectedly, and the others are kept.
func TestCommand_hold(t *testing.T) {
	t.Parallel()
	player := NewPlayer(shops.Instances{})
	t.Cleanup(func() { closePlayer(t, player) })
	in, _ := scenario("lost-update")
	good := &series{strategy: shopclient.Strategy{Name: "conditional", Available: true, PromisesCorrect: true}, in: in, times: 1}
	bad := &series{strategy: shopclient.Strategy{Name: "no-such-strategy", Available: true, PromisesCorrect: true}, in: in, times: 2}
	err := Command{Parallel: 3}.hold(t.Context(), player, []*series{bad, good}, func(string) {})
	if err != nil || !good.shown.Expected || good.unexpected != 0 || bad.unexpected != 2 {
		t.Errorf("got %v, %+v and %+v, want one to pass and one to be unexpected twice", err, good, bad)
	}
	if p := bad.shown; !strings.Contains(p.Error, "A was answered before it stopped") || len(p.Events) == 0 || p.word() != "not played" {
		t.Errorf("got %+v, want the error and what happened by then", p)
	}
}

func closePlayer(t *testing.T, p *Player) {
	t.Helper()
	if err := p.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// "No process outlives the Player, nor this process": it ends with its stdin, which this process holds, is killed at
// once, and a paused one is no exception.
func TestProcess_ends(t *testing.T) {
	t.Parallel()
	p, err := openPair(t.Context(), shops.Instances{}, quick)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p.settings)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	was, err := Child(func(string) string { return string(text) }, strings.NewReader(""), &said)
	if !was || err != nil || !strings.HasPrefix(said.String(), childReady) {
		t.Errorf("a child without stdin: got %v, %v, %q", was, err, said.String())
	}
	first := p.first
	if err := errors.Join(pauseProcess(first.Process), p.kill()); err != nil {
		t.Fatal(err)
	}
	if err := p.revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := p.first
	if second.Pid == first.Pid {
		t.Error("the killed one was not started again")
	}
	if err := errors.Join(pauseProcess(second.Process), p.close(t.Context())); err != nil {
		t.Errorf("close of a paused one: %v", err)
	}
	if err := second.Signal(os.Interrupt); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the paused one: got %v, want %v", err, os.ErrProcessDone)
	}
}

// A play, as it is printed; -rewrite writes it anew.
func TestOutput_whole(t *testing.T) {
	t.Parallel()
	at := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	play := Play{
		Scenario: "late-release", Strategy: "get-then-del", Stock: 2, Sold: 3, Wrong: 5,
		Outcome: "3 of 2 units sold, 1 too many.", Why: "A sent its DEL late.", Remedy: "redis compares and deletes in one script.",
		Events: []Event{
			{at(0.7), A, HTTP, "POST /v1/orders", ""},
			{at(2.5), A, Redis, "SET wrong:get-then-del:sku:mug DQ4YXE… NX PX 1000", "OK"},
			{at(2.9), A, Step, "lock-held", ""},
			{at(9.1), A, Schedule, "process paused (SIGSTOP)", ""},
			{at(1298.3), B, Step, "read", "1 unit"},
			{at(1299.9), A, Redis, "DEL wrong:get-then-del:sku:mug", "1"},
			{at(1308.2), B, SQL, "UPDATE skus SET available=0,reserved=2 WHERE name = mug", "1 row"},
			{at(1308.9), B, SQL, "COMMIT", "OK"},
			{at(1309.1), B, HTTP, "201: order placed", ""},
		},
	}
	var got, coloured bytes.Buffer
	Output{Out: &got}.whole(play)
	Output{Out: &coloured, Colour: true}.whole(play)
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
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns, want at most 100: %s", n, line)
		}
	}
	if strings.Contains(got.String(), "\x1b") || !strings.Contains(coloured.String(), "\x1b[31;1m") {
		t.Error("want colours where they are asked for, and only there")
	}
}
