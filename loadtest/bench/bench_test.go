package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/crowd"
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
	c, _, err := parseTo(io.Discard, io.Discard, args...)
	return c, err
}

func parseTo(stdout, stderr io.Writer, args ...string) (*Command, *kong.Context, error) {
	var grammar struct {
		Bench Command `cmd:""`
	}
	k, err := kong.Must(&grammar, kong.Writers(stdout, stderr)).Parse(append([]string{"bench"}, args...))
	return &grammar.Bench, k, err
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
		"--latency 2s":     {"--database=mysql", "--latency=2s"},
		"SQLite is a file": {"--latency=1ms"},
		"as host:port":     {"--database=mysql", "--latency=1ms", "--redis=redis://127.0.0.1:1"},
		"a TCP address":    {"--database=mysql", "--latency=1ms", "--mysql=a:b@unix(/run/mysqld.sock)/d"},
	} {
		if _, err := parse(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", args, err, want)
		}
	}
}

// buildShop returns the program that is measured.
func buildShop(t *testing.T) string {
	t.Helper()
	shop := filepath.Join(t.TempDir(), "shop")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", shop, "example.com/shop/cmd/shop").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return shop
}

// bench runs the benchmark and returns its cases, and what it printed.
func bench(t *testing.T, args ...string) ([]contest, string) {
	t.Helper()
	shop := buildShop(t)
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
	return held.cases, out.String()
}

// Every case, short: shops as processes, of two programs beside each other, a clean audit, and as many units taken as
// acknowledged.
func TestCommand_cases(t *testing.T) {
	held, out := bench(t, "--cases=hot-64,hot-512,soldout,lone,grow,skus-64,skus-512,carts-64,carts-512,zipf-64,mixed", "--buyers=2", "--time=50ms", "--rounds=1",
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

// "Write all rounds as JSON; '-' for stdout, the tables then go to stderr": an order of carts-64 has three units.
func TestCommand_JSON(t *testing.T) {
	var stdout, stderr bytes.Buffer
	c, k, err := parseTo(&stdout, &stderr, "--cases=carts-64,mixed", "--buyers=2", "--time=20ms", "--rounds=2",
		"--strategies=conditional", "--json=-", "--shop="+buildShop(t))
	if err == nil {
		err = c.Run(t.Context(), k)
	}
	if err != nil || !strings.Contains(stderr.String(), "longest") {
		t.Fatalf("got %v, and no table in\n%s", err, &stderr)
	}
	var got struct {
		Version  int
		Machine  struct{ Database, Durability string }
		Settings struct {
			Rounds  int
			Seconds float64
		}
		Cases []struct {
			Name string
			Rows []struct {
				Name, Strategy string
				Buyers         int
				Rounds         []struct {
					Acknowledged, Units, Unsettled int64
					Latency                        crowd.Latency `json:"latency_ms"`
					Longest                        float64       `json:"longest_ms"`
				}
			}
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v:\n%s", err, &stdout)
	}
	if got.Version != 1 || !strings.Contains(got.Machine.Database, "SQLite") || got.Machine.Durability == "" ||
		got.Settings.Rounds != 2 || got.Settings.Seconds != 0.02 || len(got.Cases) != 2 {
		t.Errorf("got %+v", got)
	}
	for _, one := range got.Cases {
		if len(one.Rows) != 2 || one.Rows[0].Name != "conditional" || one.Rows[1].Name != nothing {
			t.Errorf("%s: got rows %+v", one.Name, one.Rows)
			continue
		}
		for _, r := range one.Rows[0].Rounds {
			lines := map[string]int64{"carts-64": 3, "mixed": 1}[one.Name]
			if r.Acknowledged == 0 || r.Units+r.Unsettled != lines*r.Acknowledged || r.Latency.Max == 0 || r.Longest < r.Latency.Max {
				t.Errorf("%s: got %+v, want orders of %d units each", one.Name, r, lines)
			}
		}
		if len(one.Rows[0].Rounds) != 2 {
			t.Errorf("%s: got %d rounds, want 2", one.Name, len(one.Rows[0].Rounds))
		}
	}
	for _, key := range regexp.MustCompile(`"([^"]*)":`).FindAllStringSubmatch(stdout.String(), -1) {
		if !regexp.MustCompile(`^[a-z0-9_]+$`).MatchString(key[1]) {
			t.Errorf("got key %q, want snake_case", key[1])
		}
	}
}

// "Time that each answer of MySQL and Redis takes": an order waits for several.
func TestCommand_latency(t *testing.T) {
	held, out := bench(t, "--cases=lone", "--time=100ms", "--rounds=1", "--strategies=redis", "--latency=30ms",
		"--database=mysql", "--mysql="+testserver.MySQL(t), "--redis="+testserver.Redis(t))
	if got := held[0].rows[0].rounds[0]; got.LatencyMS.P50 < 60 || got.Wrong != "" || !strings.Contains(out, "latency of MySQL and Redis: 30ms") {
		t.Errorf("got %+v, want more than 60 ms for an order, and\n%s", got, out)
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
			rounds = append(rounds, round{Summary: crowd.Summary{OrdersPerSecond: v, AnswersPerSecond: v, LatencyMS: crowd.Latency{P50: 1000 / v}}, Longest: 5000 / v})
		}
		return rounds
	}
	c := &contest{name: "hot", about: "a case", rows: []*row{
		{name: "redis", rounds: rates(100, 10, 200)},
		{name: "conditional", rounds: rates(300, 40, 600), base: "redis"},
		{name: nothing, rounds: rates(1000, 100, 2000)},
	}}
	for byP50, want := range map[bool]string{
		false: "conditional 0 300 0 187% 0.30 3.00 1.00 3.00 3.33ms - 125ms 0 0% 0% - yes",
		true:  "conditional 0 300 0 700% 3.33 0.33 1.00 0.33 3.33ms - 125ms 0 0% 0% - yes",
	} {
		c.byP50 = byP50
		if got := printed(c); !strings.Contains(got, want) {
			t.Errorf("by p50 %v: got\n%s\nwant %s", byP50, got, want)
		}
	}
	c.byP50 = false
	for _, buyers := range []int{10, 100} {
		c.rows = append(c.rows, &row{name: "lanes", buyers: buyers, rounds: rates(float64(buyers))}, &row{name: "lanes, other", base: "lanes", buyers: buyers, rounds: rates(5)})
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
