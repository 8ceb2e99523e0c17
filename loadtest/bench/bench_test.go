package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/shops"
)

// TestMain makes the test binary the program where the benchmark runs itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "bench" {
		if err := serveNothing(context.Background(), os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(testserver.Wrap(m).Run()) //nolint:forbidigo // this is the test binary's main
}

// parse reads flags as package main does.
func parse(args ...string) (*Command, error) {
	var grammar struct {
		Bench Command `cmd:""`
	}
	_, err := kong.Must(&grammar).Parse(append([]string{"bench"}, args...))
	return &grammar.Bench, err
}

func TestCommand_usage(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--rounds 1001":    {"--rounds=1001"},
		"--time 1ms":       {"--time=1ms"},
		"--buyers 10001":   {"--buyers=10001"},
		"hot-512":          {"--cases=warm"},
		"mariadb":          {"--database=oracle"},
		"--database mysql": {"--mysql=a:b@tcp(c)/d"},
		"its own":          {"--redis=127.0.0.1:1", "--against=x"},
	} {
		if _, err := parse(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", args, err, want)
		}
	}
}

// bench runs the benchmark and returns its cases, and what it printed.
func bench(t *testing.T, args ...string) ([]contest, string) {
	t.Helper()
	shop := filepath.Join(t.TempDir(), "shop")
	if err := shops.Build(t.Context(), "", "cmd/shop", shop); err != nil {
		t.Fatal(err)
	}
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "SHOP", shop)
	}
	c, err := parse(append(args, "--shop", shop)...)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	held, err := c.measure(t.Context(), &out, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return held, out.String()
}

// Every case, short: shops as processes, of two programs beside each other, a clean audit, and as many units taken as
// acknowledged.
func TestCommand_cases(t *testing.T) {
	held, out := bench(t, "--cases=hot-64,hot-512,soldout,lone,grow,skus-64,skus-512,carts-64,carts-512,zipf-64,mixed",
		"--buyers=2", "--time=50ms", "--rounds=1",
		"--strategies=redis", "--against=SHOP")
	if len(held) != len(allCases()) {
		t.Errorf("got %d cases, want %d", len(held), len(allCases()))
	}
	for _, c := range held {
		if len(c.rows) != 3 {
			t.Errorf("%s: got %d rows, want 3", c.name, len(c.rows))
		}
		for _, row := range c.rows {
			one, refuses := row.rounds[0], c.name == "soldout" && row.name != nothing
			if one.Acknowledged > 0 == refuses || one.Refused > 0 != refuses || one.Errors > 0 || one.Wrong != "" {
				t.Errorf("%s, %s: got %+v", c.name, row.name, one)
			}
		}
	}
	for _, want := range []string{"SQLite", "to nothing", "to other", "redis, other"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
}

// "10,000 buyers can wait for one instance at once: each takes less than 64 KB, connection included, and all are
// answered": the whole process grows by no more.
func TestCommand_crowd(t *testing.T) {
	testserver.NotUnderRace(t)
	if testing.Short() {
		t.Skip("10,000 orders")
	}
	held, out := bench(t, "--cases=grow", "--buyers=10000", "--strategies=lanes")
	t.Log(out)
	if one := held[0].rows[0].rounds[0]; one.Acknowledged != 10_000 || one.BuyerBytes >= 64<<10 {
		t.Errorf("got %+v; want 10,000 orders, and less than 64 KB for each buyer", one)
	}
}

// "Durable is what the server's own variables say": the tests' MySQL flushes nothing.
func TestCommand_servers(t *testing.T) {
	held, out := bench(t, "--cases=lone", "--time=100ms", "--rounds=2", "--strategies=redis",
		"--database=mysql", "--mysql="+testserver.MySQL(t), "--redis="+testserver.Redis(t))
	rounds := held[0].rows[0].rounds
	if len(rounds) != 2 || rounds[0].Acknowledged == 0 || rounds[0].Wrong != "" || !strings.Contains(out, "NOT durable") {
		t.Errorf("got %+v, want two rounds with sales on a server that is not durable, and\n%s", rounds, out)
	}
}

// "after an unknown outcome or for a cancelled order, at most its units more"
func TestDisagree(t *testing.T) {
	t.Parallel()
	for taken, right := range map[int64]bool{29: false, 30: true, 33: true, 34: false} {
		if wrong := disagree(taken, round{Units: 30, Unsettled: 3}); (wrong == "") != right {
			t.Errorf("%d units: got %q", taken, wrong)
		}
	}
}

// "Figures are medians over the rounds; ratios are taken within a round first", and what went wrong in any round
// stands below the table.
func TestContest_print(t *testing.T) {
	t.Parallel()
	rates := func(all ...float64) (rounds []round) {
		for _, v := range all {
			rounds = append(rounds, round{Summary: crowd.Summary{OrdersPerSecond: v, AnswersPerSecond: v,
				LatencyMS: crowd.Latency{P50: 1000 / v, Max: 5000 / v}}})
		}
		return rounds
	}
	c := &contest{name: "hot", about: "a case", rows: []*row{
		{name: "redis", rounds: rates(100, 10, 200)},
		{name: "conditional", rounds: rates(300, 40, 600), base: "redis"},
		{name: nothing, rounds: rates(1000, 100, 2000)},
	}}
	for byP50, want := range map[bool]string{
		false: "conditional 0 300 0 187% 0.30 3.00 1.00 3.00 3.33ms - 125ms 0 - yes",
		true:  "conditional 0 300 0 700% 3.33 0.33 1.00 0.33 3.33ms - 125ms 0 - yes",
	} {
		c.byP50 = byP50
		if got := printed(c); !strings.Contains(got, want) {
			t.Errorf("by p50 %v: got\n%s\nwant %s", byP50, got, want)
		}
	}
	c.byP50 = false
	for _, buyers := range []int{10, 100} {
		c.rows = append(c.rows, &row{name: "lanes", buyers: buyers, rounds: rates(float64(buyers))},
			&row{name: "lanes, other", base: "lanes", buyers: buyers, rounds: rates(5)})
	}
	if got, want := printed(c), "lanes, other 100 5 0 - - - - 0.05 "; !strings.Contains(got, want) {
		t.Errorf("by the row of as many buyers: got\n%s\nwant %s", got, want)
	}
	c.rows[0].rounds[1] = round{Summary: crowd.Summary{Errors: 3}, Wrong: "9 orders in the books", Problem: "answer 503"}
	if got, want := printed(c), "redis: WRONG: 9 orders in the books redis: answer 503"; !strings.Contains(got, want) || !c.broken() {
		t.Errorf("got broken %v and\n%s\nwant %q", c.broken(), got, want)
	}
}

// printed is the table with single blanks.
func printed(c *contest) string {
	var out bytes.Buffer
	c.print(&out)
	return strings.Join(strings.Fields(out.String()), " ")
}
