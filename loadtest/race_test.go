package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
)

// "all" on the embedded default: those that promise are correct, those that lack a server are listed with the reason,
// and none of the others is left out.
func TestRun_all(t *testing.T) {
	r, stdout, _ := raced(t, "--strategies", "all", "--buyers", "30", "--stock", "5")
	wantRun(t, r, 30, "lanes", "batch", "redis", "redlock", "optimistic", "conditional", "pre-deduct-reconciled",
		"none", "mutex", "setnx-expire", "setex", "blind-del", "get-then-del", "release-before-commit", "short-lease", "read-before-lock",
		"redlock-unguarded", "try-once", "reentrant-count", "mysql-lock-ownerless", "pre-deduct", "pre-deduct-only")
	var missing []string
	for _, n := range r.NotRun {
		missing = append(missing, n.Name)
		if !stdout.Has(n.Name) || n.Reason == "" {
			t.Errorf("not run: %+v, want the reason also on stdout", n)
		}
	}
	want := []string{"mysql-lock", "zookeeper", "for-update", "late-payment-guarded", "get-lock", "serializable",
		"reentrant", "repeatable-read", "late-payment"}
	if !slices.Equal(missing, want) {
		t.Errorf("not run: got %v, want %v", missing, want)
	}
}

// raced returns the report of a run in which all that promise were correct.
func raced(t *testing.T, args ...string) (r result.Report, stdout, stderr *testserver.LogBuffer) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	code, stdout, stderr := start(t, append(args, "--json", file)...)
	if code != app.ExitDone {
		t.Fatalf("exit code: got %d, want %d; stderr:\n%s\n%s", code, app.ExitDone, stderr.String(), stdout.String())
	}
	return loadReport(t, file), stdout, stderr
}

// wantRun fails unless these strategies were run, and were correct if they are designed to be.
func wantRun(t *testing.T, r result.Report, crowd int64, names ...string) {
	t.Helper()
	var ran []string
	for _, s := range r.Strategies {
		ran = append(ran, s.Name)
		sound(t, s, crowd)
		if s.Designed && !s.Correct() {
			t.Errorf("%s: got %+v, want it to be correct", s.Name, s)
		}
	}
	if !slices.Equal(ran, names) {
		t.Errorf("run: got %v, want %v", ran, names)
	}
}

// --servers docker has what every strategy needs, and leaves nothing running.
func TestRun_docker(t *testing.T) {
	testserver.NotUnderRace(t)
	testserver.MySQL(t) // skips where there are no containers
	testserver.Redis(t)
	testserver.ZooKeeper(t)
	r, _, stderr := raced(t, "--strategies", "all", "--servers", "docker", "--buyers", "30", "--stock", "5")
	wantRun(t, r, 30, "lanes", "batch", "redis", "redlock", "mysql-lock", "zookeeper", "for-update", "optimistic",
		"conditional", "pre-deduct-reconciled",
		"get-lock", "serializable",
		"none", "mutex", "setnx-expire", "setex", "blind-del", "get-then-del", "release-before-commit", "short-lease", "read-before-lock",
		"redlock-unguarded", "try-once", "reentrant-count", "mysql-lock-ownerless", "repeatable-read", "pre-deduct", "pre-deduct-only")
	if len(r.NotRun) != 3 { // reentrant, and payments that are late
		t.Errorf("not run: got %+v, want three", r.NotRun)
	}
	for _, want := range []string{"starting 8 containers", "image ", "ZooKeeper "} {
		if !stderr.Has(want) {
			t.Errorf("stderr: want %q in\n%s", want, stderr.String())
		}
	}
}

// The main job on servers of the user's.
func TestRun_servers(t *testing.T) {
	r, stdout, _ := raced(t, "--mysql", testserver.MariaDB(t), "--redis", testserver.Redis(t), "--buyers", "300",
		"--strategies", "none,mutex,redis,lanes")
	wantRun(t, r, 300, "none", "mutex", "redis", "lanes")
	if m := r.Machine; !strings.HasPrefix(m.DatabaseVersion, "MariaDB ") ||
		!strings.HasPrefix(m.RedisVersion, "Redis ") || strings.Contains(m.RedisVersion, "protocol") {
		t.Errorf("versions: got %q, %q, want those of MariaDB and Redis", m.DatabaseVersion, m.RedisVersion)
	}
	for _, s := range r.Strategies {
		if oversold := s.Verdict == "oversold"; oversold == s.Designed || s.Designed && s.UnitsSold != 100 {
			t.Errorf("%s: got %+v, want it to oversell, or 100 units sold if it is designed to be correct", s.Name, s)
		}
	}
	t.Log("\n" + stdout.String())
}

// With --duration, a buyer orders again when answered.
func TestRun_duration(t *testing.T) {
	t.Parallel()
	shop := newLab(t, "busy", true)
	args := []string{"--target", shop.URL, "--strategies", "busy", "--buyers", "5", "--stock", "1000000000", "--duration", "1s", "--json", "-"}
	code, stdout, stderr := start(t, args...)
	r := parseReport(t, stdout.String())
	if s := r.Strategies[0]; code != app.ExitDone || r.Run.Seconds != 1 || s.Acknowledged <= 5 || s.Orders < s.Acknowledged {
		t.Errorf("got exit code %d, %+v; want %d, and orders for a second", code, s, app.ExitDone)
	}
	if want := "5 buyers each want one of 1,000,000,000 units, again and again for 1 s,"; !stderr.Has(want) {
		t.Errorf("stderr: want %q in\n%s", want, stderr.String())
	}
}

// The answer to an order is lost, and the order reaches the books after the first audit: it counts. A strategy that
// leaves a buyer without an answer has not kept its promise.
func TestRun_late(t *testing.T) {
	t.Parallel()
	shop := newLab(t, "slow", true)
	shop.silent = true
	l := loadTest{raceCommand: *parse(t, "--target", shop.URL, "--strategies", "slow", "--buyers", "6", "--stock", "6"),
		limit: 5 * time.Second}
	var out testserver.LogBuffer
	l.screen = screen{out: &out, progress: &out}
	err := l.run(t.Context())
	want := []string{"Sold 6 units of 6, none twice", "1 of the 1 buyers who never had an answer have an order",
		"slow (which left 1 buyer without an answer)."}
	for _, text := range want {
		if !errors.Is(err, errBroken) || !out.Has(text) {
			t.Errorf("got %v, want %v and %q in\n%s", err, errBroken, text, out.String())
		}
	}
}

// parse returns the flags of a race.
func parse(t *testing.T, args ...string) *raceCommand {
	t.Helper()
	var all commands
	if _, err := kong.Must(&all, abouts).Parse(args); err != nil {
		t.Fatal(err)
	}
	return &all.Race
}

// "It leaves out the files of the report, and the addresses of servers, which may contain passwords."
func TestFlags_command(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "go run ./loadtest"},
		{
			[]string{"--mysql", "shop:secret@tcp(db:3306)/shop", "--redis", "redis://:secret@cache:6379/0", "--instances", "1"},
			"go run ./loadtest --instances 1 --mysql DSN --redis ADDR",
		},
		{
			[]string{"--redlock", "a:1,b:1,c:1", "--zookeeper", "z:2181", "--json", "-"},
			"go run ./loadtest --redlock ADDR,... --zookeeper ADDR",
		},
		{[]string{"--servers", "docker"}, "go run ./loadtest --servers docker"},
		{
			[]string{"--target", "http://me:secret@shop", "--strategies", "all", "--think", "0s", "--instances", "2"},
			"go run ./loadtest --strategies all --think 0s --target http://me:xxxxx@shop",
		},
	} {
		f := parse(t, tt.args...)
		if got := f.command(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
		if report := fmt.Sprintf("%+v", (loadTest{raceCommand: *f}).report(shopclient.Lab{})); strings.Contains(report, "secret") {
			t.Errorf("a password is in %s", report)
		}
	}
}
