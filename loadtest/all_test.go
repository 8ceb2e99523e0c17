package main

import (
	"path/filepath"
	"slices"
	"testing"

	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/logs/logbook"
	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/report"
)

// "all" on the embedded default: those that promise are correct, those that lack a
// server are listed with the reason, and none of the others is left out.
func TestRun_all(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	var stdout, stderr logbook.Book
	code := run(t.Context(), []string{"--strategies", "all", "--buyers", "30", "--stock", "5", "--json", file}, noEnv, &stdout, &stderr)
	if code != cli.OK {
		t.Fatalf("exit code: got %d, want %d; stderr:\n%s\n%s", code, cli.OK, stderr.String(), stdout.String())
	}
	r := readReport(t, file)
	wantRun(t, r, 30, "lanes", "redis", "redlock", "optimistic", "conditional",
		"none", "mutex", "setnx-expire", "setex", "blind-del", "get-then-del", "release-before-commit", "short-lease")
	var missing []string
	for _, n := range r.NotRun {
		missing = append(missing, n.Name)
		if !stdout.Has(n.Name) || n.Reason == "" {
			t.Errorf("not run: %+v, want the reason on stdout, too", n)
		}
	}
	if want := []string{"mysql-lock", "zookeeper", "for-update"}; !slices.Equal(missing, want) {
		t.Errorf("not run: got %v, want %v", missing, want)
	}
}

// wantRun fails unless these strategies were run, and kept their promises if they
// gave any, or else were caught.
func wantRun(t *testing.T, r report.Report, crowd int64, names ...string) {
	t.Helper()
	var ran []string
	for _, s := range r.Strategies {
		ran = append(ran, s.Name)
		sound(t, s, crowd)
		if s.PromisesCorrect && !s.Correct() {
			t.Errorf("%s: got %+v, want it to be correct", s.Name, s)
		}
		if !s.PromisesCorrect && s.Correct() && s.CaughtIn == "" {
			t.Errorf("%s: got %+v, want it to be caught, by its race or its play", s.Name, s)
		}
	}
	if !slices.Equal(ran, names) {
		t.Errorf("run: got %v, want %v", ran, names)
	}
}

// --servers docker has what every strategy needs, and leaves nothing running.
func TestRun_docker(t *testing.T) {
	testserver.MySQL(t) // skips where there are no containers
	testserver.Redis(t)
	testserver.ZooKeeper(t)
	file := filepath.Join(t.TempDir(), "report.json")
	var stdout, stderr logbook.Book
	code := run(t.Context(), []string{"--strategies", "all", "--servers", "docker", "--buyers", "30", "--stock", "5", "--json", file}, noEnv, &stdout, &stderr)
	if code != cli.OK {
		t.Fatalf("exit code: got %d, want %d; stderr:\n%s\n%s", code, cli.OK, stderr.String(), stdout.String())
	}
	r := readReport(t, file)
	wantRun(t, r, 30, "lanes", "redis", "redlock", "mysql-lock", "zookeeper", "for-update", "optimistic", "conditional",
		"none", "mutex", "setnx-expire", "setex", "blind-del", "get-then-del", "release-before-commit", "short-lease")
	if len(r.NotRun) > 0 {
		t.Errorf("not run: got %+v, want none", r.NotRun)
	}
	for _, want := range []string{"starting 8 containers", "MySQL answers after", "ZooKeeper answers after"} {
		if !stderr.Has(want) {
			t.Errorf("stderr: want %q in\n%s", want, stderr.String())
		}
	}
}
