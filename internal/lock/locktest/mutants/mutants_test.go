// Package mutants proves that the tests of package lock notice mistakes.
//
// Its test has a table of mistakes, each a change of a few characters in the sources of package lock, with the rule
// that it breaks and the test that must notice: a simulated seed of locksim, or a rule of locktest against Memory or
// Redis' scripts. For each, the test is compiled with a changed copy of the file (go build -overlay: the sources stay
// as they are), and has to fail; a test that hangs has failed. A mistake that does not compile, or whose place in the
// source is not found exactly once, fails this test instead, so that the table stays up to date.
//
// Without -all, the test compiles each mistake, and tries the first one of each table.
//
// Adding a mistake is adding a row. Do it for each bug that is found by other means: first the row, then the test that
// catches it.
package mutants

import (
	"context"
	"errors"
	"flag"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
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

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/testserver/overlay"
)

var (
	seeds = flag.String("seeds", "1500", "how many seeds a mistake has to pass to survive")
	all   = flag.Bool("all", false, "try all mistakes, and not only the first one of each table")
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
			_, list := change(t, m)
			if out, err := try(t, m, list, 5*time.Minute, "100"); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	compile := compiler(t)
	for _, table := range [][]mutant{lockerMutants, memoryMutants, redisMutants} {
		for i, m := range table {
			t.Run(m.rule, func(t *testing.T) {
				changed, list := change(t, m)
				compile(t, changed)
				t.Parallel()
				if i > 0 && !*all {
					t.Skip("compiles; is tried with -all")
				}
				out, err := try(t, m, list, 15*time.Second, *seeds)
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
}

// root returns the folder of package lock.
func root(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// change makes the edits of a mistake in copies of package lock's files. list is the name of their list, for go build
// -overlay.
func change(t *testing.T, m mutant) (changed overlay.Overlay, list string) {
	t.Helper()
	changed = overlay.Overlay{}
	for _, e := range m.edits {
		if err := changed.Edit(filepath.Join(root(t), e.file), e.old, e.new); err != nil {
			t.Fatal(err)
		}
	}
	if !m.needsRedis() { // linking takes most of its time for go-redis
		files, _ := filepath.Glob(filepath.Join(root(t), "redis*.go"))
		for _, f := range files {
			changed[f] = ""
		}
	}
	list, err := changed.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return changed, list
}

// compiler returns a function that fails a test unless package lock and the changed scripts compile with an overlay.
// To type-check them in this process takes 10 ms, where a build takes a second.
func compiler(t *testing.T) func(*testing.T, overlay.Overlay) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", root(t))
	list.Env = noCgo()
	listed, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{} // the files with the compiled imports
	for line := range strings.Lines(string(listed)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	positions := token.NewFileSet()
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(positions, "gc", lookup)}
	sources, _ := filepath.Glob(filepath.Join(root(t), "*.go"))
	sources = slices.DeleteFunc(sources, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })

	return func(t *testing.T, changed overlay.Overlay) {
		t.Helper()
		var files []*ast.File
		for _, name := range sources {
			var source any // nil: the file
			if text, ok := changed[name]; ok {
				source = text
			}
			if source == "" {
				continue
			}
			file, err := parser.ParseFile(positions, name, source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		if _, err := config.Check("example.com/shop/internal/lock", positions, files, nil); err != nil {
			t.Fatal(err)
		}
		for name, text := range changed {
			if filepath.Ext(name) != ".lua" {
				continue
			}
			if err := client.ScriptLoad(t.Context(), text).Err(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// noCgo is the environment of builds, which link faster without C, and build what is not changed once for all tests.
func noCgo() []string { return append(os.Environ(), "CGO_ENABLED=0") }

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
	compile.Env = noCgo()
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
