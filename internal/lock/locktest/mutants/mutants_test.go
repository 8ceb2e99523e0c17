// Package mutants proves that the tests of package lock notice mistakes.
//
// Its test has a table of mistakes, each a change of a few characters in the sources of package lock, with the rule
// that it breaks and the test that must notice: a simulated seed of locksim, or a rule of locktest against Memory or
// Redis' scripts. For each, the test is compiled with a changed copy of the file (go build -overlay: the sources stay
// as they are), and has to fail; a test that hangs has failed. A mistake that does not compile, or whose place in the
// source is not found exactly once, fails this test instead, so that the table stays up to date.
//
// Adding a mistake is adding a row. Do it for each bug that is found by other means: first the row, then the test that
// catches it.
package mutants

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/testserver/overlay"
)

var (
	seeds = flag.String("seeds", "1500", "how many seeds a mistake has to pass to survive")
	all   = flag.Bool("all", false, "try all mistakes, and not a twentieth, another one each day")
)

// TestMain lets tests that hang overlap with those that compile.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	m.Run()
}

// Each mistake is noticed by the test that is said to notice it, and without a mistake these tests pass.
func TestMutants(t *testing.T) { //nolint:tparallel // its rows share the cores; nothing else runs beside them
	if testing.Short() {
		t.Skip("builds the package many times: not with -short")
	}
	for _, m := range []mutant{{test: sim}, {test: "TestMemory/Exclusion"}, {test: "TestRedis/Exclusion"}} {
		t.Run("unchanged "+m.test, func(t *testing.T) {
			t.Parallel()
			if out, err := try(t, m, change(t, m), 5*time.Minute, "100"); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	for i, m := range slices.Concat(lockerMutants, storeMutants) {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			changed := change(t, m)
			if (i+time.Now().YearDay())%20 != 0 && !*all {
				t.Skip("has its place in the source; is tried with -all, and each twentieth day without")
			}
			out, err := try(t, m, changed, 15*time.Second, *seeds)
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if err == nil {
				t.Fatalf("survives %s", m.test)
			}
			t.Logf("%s: %s", m.test, noticed(out))
		})
	}
}

// change makes the edits of a mistake in copies of package lock's files. It returns the list for go build -overlay.
func change(t *testing.T, m mutant) (list string) {
	t.Helper()
	root, err := filepath.Abs("../..") // package lock
	if err != nil {
		t.Fatal(err)
	}
	changed := overlay.Overlay{}
	for _, e := range m.edits {
		if err := changed.Edit(filepath.Join(root, e.file), e.old, e.new); err != nil {
			t.Fatal(err)
		}
	}
	if !m.needsRedis() { // linking takes most of its time for go-redis
		files, _ := filepath.Glob(filepath.Join(root, "redis*.go"))
		for _, f := range files {
			changed[f] = ""
		}
	}
	if list, err = changed.Write(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return list
}

// try compiles the test that must fail with the changed sources of an overlay, runs it for as long as most, and returns
// what it prints.
func try(t *testing.T, m mutant, changed string, most time.Duration, seeds string) (out string, err error) {
	t.Helper()
	suite := "./testdata/memory"
	switch {
	case m.test == sim:
		suite = "../locksim"
	case m.needsRedis():
		suite = "./testdata/redis"
	}
	file := filepath.Join(t.TempDir(), "mutant.test")
	compile := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+changed, "-o", file, suite)
	compile.Env = append(os.Environ(), "CGO_ENABLED=0") // links faster, and builds what is not changed once for all tests
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compile, err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), most+10*time.Second)
	defer cancel()
	run := exec.CommandContext(ctx, file, "-test.failfast", "-test.timeout="+most.String(),
		"-test.run=^"+strings.ReplaceAll(m.test, "/", "$/^")+"$")
	if m.test == sim {
		run.Args = append(run.Args, "-seeds="+seeds)
	}
	run.Dir = t.TempDir()
	printed, err := run.CombinedOutput()
	return string(printed), err
}

// noticed returns the line of the output with the failure.
func noticed(out string) string {
	if m := regexp.MustCompile(`(?m)^ *(BROKEN .*|\w+\.go:\d+: .+|panic: .*)$`).FindString(out); m != "" {
		return strings.TrimSpace(m)
	}
	return out
}
