package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/result"
)

func noEnv(string) string { return "" }

// start runs the program to its end.
func start(t *testing.T, args ...string) (code int, stdout, stderr *testserver.LogBuffer) {
	t.Helper()
	stdout, stderr = new(testserver.LogBuffer), new(testserver.LogBuffer)
	return run(t.Context(), args, noEnv, stdout, stderr), stdout, stderr
}

// The main job, small: real shops on the embedded default, over HTTP.
func TestRun_embedded(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir := t.TempDir()
	file, page := filepath.Join(dir, "report.json"), filepath.Join(dir, "report.html")
	picture, figures := filepath.Join(dir, "picture.svg"), filepath.Join(dir, "report.csv")
	code, stdout, stderr := start(t, "--buyers", "60", "--stock", "6", "--think", "10ms", "--json", file, "--html", page,
		"--svg", picture, "--csv", figures)
	if code != 0 {
		t.Fatalf("exit code: got %d, want 0; stderr:\n%s", code, stderr.String())
	}
	r := loadReport(t, file)
	if got, want := r.Run, (result.Run{
		Buyers: 60, Stock: 6, Instances: 3, ThinkMS: 10,
		Command: "go run ./loadtest --buyers 60 --stock 6 --think 10ms",
	}); got != want {
		t.Errorf("run: got %+v, want %+v", got, want)
	}
	if r.Machine.OS == "" || r.Machine.Go == "" || r.Machine.Database == "" || r.Machine.Redis == "" || r.Machine.CPUs == 0 {
		t.Errorf("machine: got %+v, want all that is always known", r.Machine)
	}
	var names, verdicts []string
	for _, s := range r.Strategies {
		names, verdicts = append(names, s.Name), append(verdicts, string(s.Verdict))
		sound(t, s, 60)
		tells(t, s)
	}
	if diff := cmp.Diff([]string{"none", "mutex", "redis"}, names); diff != "" {
		t.Errorf("strategies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"oversold", "oversold", "correct"}, verdicts); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s\n%s", diff, stdout.String())
	}
	for _, want := range []string{"60 buyers each want one of 6 units", "3 shop instances", "10ms", "SQLite, embedded",
		"As expected, redis was correct."} {
		if !stdout.Has(want) {
			t.Errorf("stdout: want %q in\n%s", want, stdout.String())
		}
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "Did the shop oversell?") {
		t.Errorf("page: %v, got %.100s", err, text)
	}
	wantShape(t, picture, "../docs/oversell.svg", `<title>(\w+): .* sold, (oversold|correct)`)
	text, err := os.ReadFile(figures)
	if err != nil || !strings.HasPrefix(string(text), "strategy,designed,verdict,supplied,") ||
		!strings.Contains(string(text), "\nredis,true,correct,6,6,6,0,0,0,6,54,0,") {
		t.Errorf("CSV: %v, got\n%s", err, text)
	}
	table := filepath.Join(dir, "table.txt")
	if err := os.WriteFile(table, []byte(stdout.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	wantShape(t, table, "../README.md", `(?m)^(none|mutex|redis|strategy) .*  (oversold|correct|verdict)$`)
	if want := "The report is in " + page; !stdout.Has(want) {
		t.Errorf("stdout: want %q in\n%s", want, stdout.String())
	}
	if !strings.HasPrefix(r.Machine.DatabaseVersion, "SQLite 3.") || r.Machine.RedisVersion == "" {
		t.Errorf("versions: got %q, %q, want those that the shop names", r.Machine.DatabaseVersion, r.Machine.RedisVersion)
	}
	if stdout.Has("\x1b") {
		t.Error("stdout is coloured, but no terminal")
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: got %v, %v, want nothing", left, err)
	}
}

// wantShape compares the parts of two files that match a pattern: the picture and the table of the README show what a
// run shows, with the figures of another one.
func wantShape(t *testing.T, got, want, pattern string) {
	t.Helper()
	var shapes [2][][]string
	for i, file := range []string{want, got} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			shapes[i] = append(shapes[i], match[1:])
		}
	}
	if diff := cmp.Diff(shapes[0], shapes[1]); diff != "" || len(shapes[0]) < 3 {
		t.Errorf("%s and this run differ (-file +run):\n%s", want, diff)
	}
}

// sound checks what holds for every race without faults, right or wrong.
func sound(t *testing.T, s result.Strategy, crowd int64) {
	t.Helper()
	if s.Errors != 0 {
		t.Errorf("%s: errors: got %d, want 0: %v", s.Name, s.Errors, s.Notes)
	}
	if s.Orders != s.Acknowledged || s.Orders+s.Refused != crowd {
		t.Errorf("%s: %d orders, %d acknowledged, %d refused, want all %d buyers and no others",
			s.Name, s.Orders, s.Acknowledged, s.Refused, crowd)
	}
	if s.Oversold != max(0, s.UnitsSold-s.Supplied) {
		t.Errorf("%s: oversold: got %d with %d units sold of %d", s.Name, s.Oversold, s.UnitsSold, s.Supplied)
	}
	l := s.LatencyMS
	if l.P50 <= 0 || l.P50 > l.P90 || l.P90 > l.P95 || l.P95 > l.P99 || l.P99 > l.Max || s.OrdersPerSecond <= 0 {
		t.Errorf("%s: latency %+v, %v orders/s", s.Name, l, s.OrdersPerSecond)
	}
	if s.Designed && (s.Oversold != 0 || s.Undersold != 0) {
		t.Errorf("%s: oversold %d, undersold %d, but promises to be correct", s.Name, s.Oversold, s.Undersold)
	}
}

// tells checks what the shop told of its requests: they read the stock one by one under a lock that all share, and two
// of them the same where nothing keeps them apart.
func tells(t *testing.T, s result.Strategy) {
	t.Helper()
	if s.Timeline == nil || len(s.Timeline.Requests) < 2 {
		t.Fatalf("%s: timeline: got %+v, want requests", s.Name, s.Timeline)
	}
	for _, r := range s.Timeline.Requests {
		if r.Accepted && (r.Read > r.Writing || r.Writing > r.Written || r.Written > r.Committed || r.Released > 0 && r.Committed > r.Released) {
			t.Errorf("%s: steps in disorder: %+v", s.Name, r)
		}
	}
	if s.Designed {
		if len(s.Timeline.Pair) > 0 {
			t.Errorf("%s: got the pair %v, want none", s.Name, s.Timeline.Pair)
		}
		return
	}
	if len(s.Timeline.Pair) != 2 {
		t.Fatalf("%s: got the pair %v, want two", s.Name, s.Timeline.Pair)
	}
	a, b := s.Timeline.Requests[s.Timeline.Pair[0]], s.Timeline.Requests[s.Timeline.Pair[1]]
	if a.Seen != b.Seen || a.Wrote == nil || b.Wrote == nil || *a.Wrote != *b.Wrote || *a.Wrote != a.Seen-1 {
		t.Errorf("%s: pair: got %+v and %+v, want both to have read and written the same", s.Name, a, b)
	}
}

func loadReport(t *testing.T, file string) result.Report {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parseReport(t, string(text))
}

func parseReport(t *testing.T, text string) result.Report {
	t.Helper()
	var r result.Report
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return r
}

// A shop sells to every buyer. The exit code is 1 if the shop promises to be correct, and 0 if it is
// wrong on purpose. A shop whose orders expire before they are counted is not judged: their units are
// for sale again. With --json - only the JSON is on stdout.
func TestRun_target(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		strategy string // none: it is no teaching shop
		designed bool
		status   string // of the orders
		code     int
		stderr   string
		judged   bool
	}{
		"a broken promise": {"liar", true, "", app.ExitFailed, "Designed to be correct and was not: liar.", true},
		"no promise":       {"honest", false, "", app.ExitDone, "None of these strategies is designed to be correct.", true},
		"expired":          {"hasty", true, "expired", app.ExitFailed, "start the shop with a longer --pay-within", false},
		"no lab":           {"", false, "", app.ExitFailed, "go run ./cmd/lab", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := newLab(t, c.strategy, c.designed)
			shop.status = c.status
			code, stdout, stderr := start(t, "--target", shop.URL, "--strategies", "all", "--buyers", "20", "--stock", "5", "--json", "-")
			if code != c.code || !stderr.Has(c.stderr) {
				t.Errorf("exit code: got %d, want %d; stderr, want %q in it:\n%s", code, c.code, c.stderr, stderr.String())
			}
			if !c.judged {
				if stdout.String() != "" || stderr.Has("verdict") {
					t.Errorf("want no verdict in\n%s\n%s", stdout.String(), stderr.String())
				}
				return
			}
			r := parseReport(t, stdout.String())
			if len(r.Strategies) != 1 || r.Strategies[0].Verdict != "oversold" || r.Strategies[0].Oversold != 15 || r.Strategies[0].Orders != 20 {
				t.Errorf("got %+v, want 15 oversold of 20 orders", r.Strategies)
			}
		})
	}
}

func TestRun_usage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		want string // in the message
	}{
		{[]string{"--buyers", "0"}, "--buyers: want 1 to 100000"},
		{[]string{"--stock", "0"}, "--stock: want 1 to"},
		{[]string{"--think", "2"}, "--think"},
		{[]string{"--target", "localhost"}, "http://localhost:8080"},
		{[]string{"step", "all", "none"}, "unexpected argument none"},
		{[]string{"step", "all", "--servers", "docker", "--redis", "127.0.0.1:1"}, "leave out"},
		{[]string{"step", "nonsense"}, `"nonsense" is no lesson`},
		{[]string{"--target", "http://x", "--redis", "y"}, "--target names a running shop"},
		{[]string{"--html", "-"}, "--html, --svg and --csv want the name of a file"},
		{[]string{"--json", t.TempDir()}, "is a directory"},
		{[]string{"--html", "no/such/folder/r.html"}, "no such file or directory"},
		{[]string{"--ui", "127.0.0.1:0", "--duration", "3s"}, "--ui shows buyers who all order at once: leave out --duration"},
		{[]string{"--strategies", ""}, "--strategies"},
		{[]string{"--strategies", "none,luck"}, `"luck" is not one of lanes, batch, redis, redlock, mysql-lock,`},
		{[]string{"--redis", "cache"}, "--redis: "},
		{[]string{"--strategies", "none,zookeeper"}, "zookeeper cannot be run: it needs a ZooKeeper: --zookeeper ADDR"},
		{[]string{"--ui", "127.0.0.1:0", "--json", "-"}, "--ui offers its reports in the browser"},
		{[]string{"--servers", "docker", "--redis", "a:1"}, "--servers docker starts all servers"},
		{[]string{"nonsense"}, "nonsense"},
		{[]string{"--no-such-flag"}, "--no-such-flag"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := start(t, tt.args...)
			if code != app.ExitUsage || !stderr.Has(tt.want) || stdout.String() != "" {
				t.Errorf("got exit code %d, want %d, on stdout nothing and on stderr %q:\n%s\n%s",
					code, app.ExitUsage, tt.want, stdout.String(), stderr.String())
			}
		})
	}
}

// The help without a command names all commands on one screen, with three examples; each command has its own.
func TestRun_help(t *testing.T) {
	t.Parallel()
	if lines := strings.Count(overview, "\n"); lines > 24 || strings.Count(overview, "go run ./loadtest ") < 3 {
		t.Errorf("got %d lines, want at most 24, with three examples:\n%s", lines, overview)
	}
	for _, command := range kong.Must(new(commands), abouts).Model.Children {
		if !strings.Contains(overview, "\n  "+command.Name+" ") {
			t.Errorf("got no command %s in\n%s", command.Name, overview)
		}
	}
	for command, wants := range map[string][]string{
		"":        {overview},
		"race":    {"--strategies", "Examples:", "undersold  units in no order", "Exit code:", "\nServers\n", "\nOutput\n"},
		"step":    {"A timeline reads from top to bottom", "\nServers\n"},
		"explore": {"Examples:", "\nSchedules\n", "\nServers\n"},
		"bench":   {"The cases:", "\nServers\n"},
		"faults":  {"Examples:", "\nOutput\n"},
		"designs": {"Examples:", "\nServers\n", "\nOutput\n"},
	} {
		code, stdout, _ := start(t, append(strings.Fields(command), "--help")...)
		for _, want := range wants {
			if code != app.ExitDone || !stdout.Has(want) {
				t.Errorf("%s --help: got %d, want %d and %q in\n%s", command, code, app.ExitDone, want, stdout.String())
			}
		}
	}
	_, help, _ := start(t, "race", "--help")
	for line := range strings.Lines(overview + help.String()) {
		if got := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); got > helpWidth {
			t.Errorf("got a line of %d columns, want at most %d: %s", got, helpWidth, line)
		}
	}
}
