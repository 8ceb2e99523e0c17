package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/testserver"
)

// binary is the path of the shop's program, in a folder of its own. Tests start it as a process, to signal and to kill.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "shop-test-")
	if err == nil {
		binary = filepath.Join(dir, "shop")
		var out []byte
		if out, err = exec.CommandContext(context.Background(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	code := 1
	if err == nil {
		code = testserver.Wrap(m).Run()
	}
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // this is the test binary's main
}

// patience is the time limit for a step that takes milliseconds, on a busy machine.
const patience = 30 * time.Second

// opening is the time limit for the start of a shop. If the process ends before, the test fails at once.
const opening = 2 * time.Minute

// command returns the shop, ready to start. Of the SHOP_ variables, it has only the given variables.
func command(t *testing.T, variables []string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(context.Background(), binary, args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "SHOP_") {
			c.Env = append(c.Env, variable)
		}
	}
	c.Env = append(c.Env, variables...)
	return c
}

type result struct {
	code           int
	stdout, stderr string
}

// shop runs a command to its end.
func shop(t *testing.T, args ...string) result {
	t.Helper()
	return shopWith(t, nil, args...)
}

func shopWith(t *testing.T, variables []string, args ...string) result {
	t.Helper()
	c := command(t, variables, args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// want fails unless the command ended with the code and printed each text.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Fatalf("got exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.stdout, r.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(r.stdout+r.stderr, text) {
			t.Errorf("got %s%s, want %q in it", r.stdout, r.stderr, text)
		}
	}
}

// running is a shop that serves.
type running struct {
	url            string
	operator       string // URL of the operator's API; empty if there is none
	stdout, stderr *testserver.LogBuffer
	cmd            *exec.Cmd
	ended          chan struct{} // closed when the process has ended
}

// opened matches the log line, in text or JSON, with the addresses of a shop that is open.
var opened = regexp.MustCompile(`"?msg"?[=:]"shop is open",? ?"?addr"?[=:]"?([0-9.:]+)"?,? ?"?operator"?[=:]"?([0-9.:]*)`)

// startShop starts serve on a free port and returns when the shop is open. The process is killed at the
// end of the test.
func startShop(t *testing.T, args ...string) *running {
	t.Helper()
	args = append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)
	s := &running{
		cmd:    command(t, []string{"TMPDIR=" + t.TempDir()}, args...),
		stdout: &testserver.LogBuffer{}, stderr: &testserver.LogBuffer{}, ended: make(chan struct{}),
	}
	s.cmd.Stdout, s.cmd.Stderr = s.stdout, s.stderr
	testserver.Must(t, s.cmd.Start())
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
	})
	testserver.Until(t, "the shop is open", opening, func() bool {
		select {
		case <-s.ended:
			t.Fatalf("the shop did not open\nstderr: %s", s.stderr)
		default:
		}
		at := opened.FindStringSubmatch(s.stderr.String())
		if at == nil {
			return false
		}
		s.url = "http://" + at[1]
		if at[2] != "" {
			s.operator = "http://" + at[2]
		}
		return true
	})
	return s
}

// greeting returns the lines that serve prints when the shop is open.
func (s *running) greeting(t *testing.T) string {
	t.Helper()
	testserver.Until(t, "the greeting ends", patience, func() bool { return s.stdout.Has("Stop it with") })
	return s.stdout.String()
}

// shown returns the Authorization header for the token after name in the greeting.
func (s *running) shown(t *testing.T, name string) string {
	t.Helper()
	return "Authorization: Bearer " + textBetween(t, s.greeting(t), name+"'", "'")
}

func (s *running) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// wait waits for the end of the process, and returns its exit code.
func (s *running) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Fatalf("the shop did not end within %v\nstderr: %s", patience, s.stderr)
	}
	return s.cmd.ProcessState.ExitCode()
}

func textBetween(t *testing.T, text, before, after string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, before)
	inside, _, ended := strings.Cut(rest, after)
	if !found || !ended {
		t.Fatalf("got %s, want something between %q and %q", text, before, after)
	}
	return inside
}

// shell runs a script, which may call shop and curl, and returns its output.
func shell(t *testing.T, script string, variables ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	sh := exec.CommandContext(ctx, "sh", "-eu", "-c", script)
	sh.WaitDelay = time.Second // for processes that the script has left
	sh.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	sh.Env = append(sh.Env, variables...)
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\nscript: %s", err, out, script)
	}
	return string(out)
}
