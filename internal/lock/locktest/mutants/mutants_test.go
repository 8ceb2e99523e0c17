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
	all   = flag.Bool("all", false, "try all mistakes, and not a tenth, another one each day")
)

// hang is how long a test that waits for ever is waited for.
const hang = 15 * time.Second

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
	t.Run("unchanged", func(t *testing.T) {
		t.Parallel()
		for _, test := range []string{sim, "TestMemory", "TestRedis"} {
			if out, err := build(t, mutant{test: test}, change(t, mutant{test: test})).run(t, 5*time.Minute); err != nil {
				t.Errorf("%s: %v\n%s", test, err, out)
			}
		}
	})
	for i, m := range slices.Concat(lockerMutants, storeMutants) {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			changed := change(t, m)
			if (i+time.Now().YearDay())%10 != 0 && !*all {
				t.Skip("has its place in the source; is tried with -all, and each tenth day without")
			}
			b := build(t, m, changed)
			began := time.Now()
			out, err := b.run(t, hang)
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if err == nil {
				t.Fatalf("survives %s", m.test)
			}
			t.Logf("%s, after %v: %s", m.test, time.Since(began).Round(time.Millisecond), noticed(out))
		})
	}
}

// binary is a test that was compiled with a mistake.
type binary struct{ file, test string }

// build compiles the test with the changed sources of an overlay.
func build(t *testing.T, m mutant, changed string) binary {
	t.Helper()
	b := binary{file: filepath.Join(t.TempDir(), "mutant.test"), test: m.test}
	suite := "./testdata/memory"
	switch {
	case m.test == sim:
		suite = "../locksim"
	case m.needsRedis():
		suite = "./testdata/redis"
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w",
		"-overlay="+changed, "-o", b.file, suite)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // links faster, and builds what is not changed once for all tests
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return b
}

// change makes the edits of a mistake in copies of package lock's files. It returns the list for go build -overlay.
func change(t *testing.T, m mutant) (list string) {
	t.Helper()
	root, err := filepath.Abs("../..") // package lock
	if err != nil {
		t.Fatal(err)
	}
	var changed overlay.Overlay
	for _, e := range m.edits {
		if err := changed.Edit(filepath.Join(root, e.file), e.old, e.new); err != nil {
			t.Fatal(err)
		}
	}
	if !m.needsRedis() { // linking takes most of its time for go-redis
		files, _ := filepath.Glob(filepath.Join(root, "redis*.go"))
		for _, f := range files {
			changed.Remove(f)
		}
	}
	if list, err = changed.Write(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return list
}

// run returns what the test prints.
func (b binary) run(t *testing.T, most time.Duration) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.file, "-test.failfast", "-test.timeout="+most.String(),
		"-test.run=^"+strings.ReplaceAll(b.test, "/", "$/^")+"$")
	if b.test == sim {
		cmd.Args = append(cmd.Args, "-seeds="+*seeds)
	}
	cmd.Dir = t.TempDir()
	printed, err := cmd.CombinedOutput()
	return string(printed), err
}

// noticed is the line that says what is wrong.
func noticed(out string) string {
	if m := regexp.MustCompile(`(?m)^ *(BROKEN .*|\w+\.go:\d+: .+|panic: .*)$`).FindString(out); m != "" {
		return strings.TrimSpace(m)
	}
	return out
}
