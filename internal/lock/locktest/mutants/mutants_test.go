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
	"encoding/json"
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
			if out, err := build(t, mutant{test: test}, overlay(t, mutant{test: test})).run(t, 5*time.Minute); err != nil {
				t.Errorf("%s: %v\n%s", test, err, out)
			}
		}
	})
	for i, m := range slices.Concat(lockerMutants, storeMutants) {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			changed := overlay(t, m)
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

// overlay makes the edits in copies of the files, and returns the name of a file that tells the compiler to read those:
// the sources stay as they are.
func overlay(t *testing.T, m mutant) (file string) {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..") // package lock
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, e := range m.edits {
		text, changed := texts[e.file]
		if !changed {
			source, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				t.Fatal(err)
			}
			text = string(source)
		}
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("%s has %d places like this, want 1:\n%s", e.file, n, e.old)
		}
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := make(map[string]string)
	if !m.needsRedis() { // linking takes most of its time for go-redis
		files, _ := filepath.Glob(filepath.Join(root, "redis*.go"))
		for _, f := range files {
			replace[f] = "" // as if it were not there
		}
	}
	for name, text := range texts {
		replace[filepath.Join(root, name)] = filepath.Join(dir, name)
		write(t, filepath.Join(dir, name), []byte(text))
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "overlay.json")
	write(t, file, list)
	return file
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
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
