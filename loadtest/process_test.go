package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// asProgram as the first argument makes the test binary the program: only a process of its own has signals and limits.
const asProgram = "as-program"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asProgram {
		os.Args = slices.Delete(os.Args, 1, 2)
		main()
	}
	goleak.VerifyTestMain(testserver.Wrap(m))
}

// shell runs a script that calls loadtest, and returns what both print.
func shell(t *testing.T, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "bash", "-c", `loadtest() { "$0" `+asProgram+` "$@"; }; `+script, os.Args[0]).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\nof: %s", err, out, script)
	}
	return string(out)
}

// "2 if [...] the race needs more file descriptors than this process may open." The number that the error names is
// enough, even for strategies whose buyers all ask Redis at once.
func TestRun_descriptors(t *testing.T) {
	t.Parallel()
	const race = "loadtest --strategies redis,redlock,short-lease --buyers 100 --stock 10; echo exit $?"
	refused := shell(t, "ulimit -n 256; "+race)
	tooFew := regexp.MustCompile(`--buyers: too few file descriptors: this needs a limit of (\d+) \(ulimit -n \d+\), but the limit is 256`)
	named := tooFew.FindStringSubmatch(refused)
	if named == nil || !strings.HasSuffix(refused, "\nexit 2\n") {
		t.Fatalf("got %s, want the number that is needed, and exit 2", refused)
	}
	if held := shell(t, "ulimit -n "+named[1]+"; "+race); !strings.HasSuffix(held, "As expected, redis and redlock were correct.\nexit 0\n") {
		t.Errorf("got %s, want both to be correct", held)
	}
}

// "It is a limit of the machine, not a verdict", even if the shop reports it.
func TestRun_descriptors_of_shop(t *testing.T) {
	t.Parallel()
	shop := newLab(t, "right", true)
	shop.problem = "too-few-descriptors"
	code, stdout, stderr := start(t, "--target", shop.URL, "--strategies", "right", "--buyers", "20", "--stock", "5")
	if code != app.ExitFailed || !stderr.Has("too few file descriptors") || stdout.Has("undersold") || stdout.Has("verdict") {
		t.Errorf("got %d, want %d, the reason and no verdict:\n%s\n%s", code, app.ExitFailed, stdout.String(), stderr.String())
	}
}

// A command whose output is piped into a program that has read enough ends without a message.
func TestRun_closed_pipe(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"--help", "bench --help", "faults list", "step", "--strategies redis --buyers 5 --stock 1"} {
		said := shell(t, "loadtest "+args+" 2> >(cat >&2) | true; echo exit ${PIPESTATUS[0]}")
		if said = regexp.MustCompile(`redis: .* refused\n`).ReplaceAllString(said, ""); said != "exit 141\n" && said != "exit 0\n" {
			t.Errorf("%s: got %s, want nothing said", args, said)
		}
	}
}

// Ctrl-C leaves no folder behind, also where it comes twice at once, as from timeout(1) and its group; the races that
// are over are shown.
func TestRun_interrupted(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	program := exec.CommandContext(t.Context(), os.Args[0], asProgram, "--buyers", "50", "--stock", "3")
	var stdout, stderr testserver.LogBuffer
	program.Env, program.Stdout, program.Stderr = append(os.Environ(), "TMPDIR="+temp), &stdout, &stderr
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	testserver.Until(t, "one race is over", time.Minute, func() bool { return stderr.Has("mutex: ") })
	for range 2 {
		if err := program.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	_ = program.Wait()
	left, err := os.ReadDir(temp)
	if code := program.ProcessState.ExitCode(); code != app.ExitFailed || err != nil || len(left) > 0 {
		t.Errorf("got exit code %d, %v, %v left, want %d and nothing", code, err, left, app.ExitFailed)
	}
	if !stderr.Has("interrupted") || !stdout.Has("\nnone ") {
		t.Errorf("want the first race in\n%s\n%s", stdout.String(), stderr.String())
	}
}
