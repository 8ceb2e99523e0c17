package mutants

import (
	"context"
	"errors"
	"flag"
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

var seeds = flag.String("seeds", "1500", "how many seeds a mistake has to pass to survive")

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

// Each mistake is noticed by the test that is said to notice it, and without a
// mistake these tests pass.
func TestMutants(t *testing.T) { //nolint:tparallel // its rows share the cores; nothing else runs beside them
	if testing.Short() {
		t.Skip("builds the package many times; not with -short")
	}
	t.Run("unchanged", func(t *testing.T) {
		t.Parallel()
		for _, test := range []string{sim, "TestMemory", "TestRedis"} {
			if out, err := build(t, mutant{test: test}).run(t, 5*time.Minute); err != nil {
				t.Errorf("%s: %v\n%s", test, err, out)
			}
		}
	})
	for _, m := range slices.Concat(mutants, storeMutants) {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			b := build(t, m)
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

// build compiles the mistake and its test. The compiler reads the changed files
// from elsewhere: the sources stay as they are.
func build(t *testing.T, m mutant) binary {
	t.Helper()
	b := binary{file: filepath.Join(t.TempDir(), "mutant.test"), test: m.test}
	suite, without := "./testdata/suite", ""
	if m.test == sim {
		suite, without = "../locksim", "redis*.go" // which is most of the time that linking takes
	}
	command(t, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay(t, m.edits, without), "-o", b.file, suite)
	return b
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

// noticed is the line that tells what is wrong.
func noticed(out string) string {
	if m := regexp.MustCompile(`(?m)^ *(BROKEN .*|\w+\.go:\d+: .+|panic: .*)$`).FindString(out); m != "" {
		return strings.TrimSpace(m)
	}
	return out
}

// command returns what a command prints.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return strings.TrimSpace(string(out))
}
