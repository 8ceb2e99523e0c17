package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/logs/logbook"
	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/steps"
)

// A wrong strategy is shown whole, with its remedy in the same schedule.
func TestRun_step(t *testing.T) {
	var stdout, stderr logbook.Book
	if code := run(t.Context(), []string{"step", "none", "--json", "-"}, noEnv, &stdout, &stderr); code != cli.OK {
		t.Fatalf("exit code %d, want %d; stderr:\n%s", code, cli.OK, stderr.String())
	}
	var got struct{ Plays []steps.Play }
	if err := json.Unmarshal([]byte(stdout.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Plays) != 2 || got.Plays[0].Sold != 2 || got.Plays[0].Passed || got.Plays[1].Strategy != "conditional" || !got.Plays[1].Passed {
		t.Errorf("got %+v, want none to sell 2 of 1, and conditional to pass", got.Plays)
	}
	for _, want := range []string{"none in lost-update: failed", "^-- here it goes wrong", "Remedy: ", "conditional in lost-update: passed"} {
		if !stderr.Has(want) {
			t.Errorf("want %q in\n%s", want, stderr.String())
		}
	}
}

func TestRun_step_lists(t *testing.T) {
	t.Parallel()
	var stdout, stderr logbook.Book
	if code := run(t.Context(), []string{"step"}, noEnv, &stdout, &stderr); code != cli.OK {
		t.Fatalf("exit code %d, want %d", code, cli.OK)
	}
	for strategy := range steps.Failures() {
		if !stdout.Has(strategy) {
			t.Errorf("want %s in\n%s", strategy, stdout.String())
		}
	}
}

func TestRun_step_usage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--json", "plays.json"}, {"--servers", "docker"}, {"--times=20"}, // nothing is named to play
		{"all", "none"}, {"none", "--times", "0"}, {"none", "--parallel", "99"}, {"none", "--nonsense"},
		{"all", "--servers", "docker", "--redis", "127.0.0.1:1"}, {"none", "--redis", "nonsense"}, {"none", "--json", t.TempDir()},
	} {
		var stdout, stderr logbook.Book
		if code := run(t.Context(), append([]string{"step"}, args...), noEnv, &stdout, &stderr); code != cli.Usage {
			t.Errorf("%v: exit code %d, want %d; stderr %s", args, code, cli.Usage, stderr.String())
		}
	}
	var stdout, stderr logbook.Book
	if code := run(t.Context(), []string{"step", "--help"}, noEnv, &stdout, &stderr); code != cli.OK || !stdout.Has("A timeline reads from top to bottom") {
		t.Errorf("--help: exit code %d, %s", code, stdout.String())
	}
}

// Strategies that need a server of their own, on real ones: each passes in all that
// applies to it.
func TestRun_step_servers(t *testing.T) {
	mysql, zookeeper := testserver.MySQL(t), testserver.ZooKeeper(t)
	file := filepath.Join(t.TempDir(), "plays.json")
	var stdout, stderr logbook.Book
	args := []string{"step", "mysql-lock", "zookeeper", "for-update", "--mysql", mysql, "--zookeeper", zookeeper, "--json", file}
	if code := run(t.Context(), args, noEnv, &stdout, &stderr); code != cli.OK {
		t.Fatalf("exit code %d, want %d; stderr:\n%s\n%s", code, cli.OK, stderr.String(), stdout.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Plays []steps.Play }
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if want := 5 + 5 + 2; len(got.Plays) != want {
		t.Errorf("got %d plays, want %d", len(got.Plays), want)
	}
	for _, p := range got.Plays {
		if !p.Passed {
			t.Errorf("%s in %s: %s", p.Strategy, p.Scenario, p.Outcome)
		}
	}
}
