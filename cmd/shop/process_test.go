package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/logs/logbook"
)

// asProgram makes the test binary the program itself: tests start real
// processes, which can be signalled and killed.
const asProgram = "SHOP_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "curl" {
		asCurl(os.Args[1:])
		return
	}
	if os.Getenv(asMeter) != "" {
		os.Exit(meter(os.Args[1:])) //nolint:forbidigo // this process is the meter, not the test
	}
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(testserver.Main(m)) //nolint:forbidigo // this is the test binary's main
}

// patience is for what takes milliseconds, on a machine that has better to do.
const patience = 30 * time.Second

// opening is for a shop to start; one that cannot ends, and is not waited for.
const opening = 2 * time.Minute

// command returns the program, ready to start, in an environment without SHOP_
// variables except those given.
func command(t *testing.T, variables []string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(context.Background(), os.Args[0], args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "SHOP_") {
			c.Env = append(c.Env, variable)
		}
	}
	c.Env = append(c.Env, variables...)
	c.Env = append(c.Env, asProgram+"=1")
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
	url      string
	operator string // URL of its API; empty without one
	stdout   string // until the shop was open
	stderr   *logbook.Book
	cmd      *exec.Cmd
	ended    chan struct{} // closed when the process has
}

// startShop starts serve on a free port and returns when the shop is open. The
// process is killed at the end, unless it has ended.
func startShop(t *testing.T, args ...string) *running {
	t.Helper()
	s, err := openShop(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openShop is startShop for goroutines that are not the test's.
func openShop(t *testing.T, args ...string) (*running, error) {
	t.Helper()
	args = append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)
	c := command(t, []string{"TMPDIR=" + t.TempDir()}, args...)
	stdout, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s := &running{cmd: c, stderr: &logbook.Book{}, ended: make(chan struct{})}
	c.Stderr = s.stderr
	if err := c.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-s.ended
	})
	greeting := make(chan string, 1)
	go func() {
		greeting <- readGreeting(stdout)
		_, _ = io.Copy(io.Discard, stdout)
		_ = c.Wait()
		close(s.ended)
	}()
	select {
	case s.stdout = <-greeting:
	case <-time.After(opening):
		return nil, fmt.Errorf("the shop did not open within %v\nstderr: %s", opening, s.stderr)
	}
	for line := range strings.Lines(s.stdout) {
		if url, ok := strings.CutPrefix(strings.TrimSpace(line), "The shop is open at "); ok {
			s.url = url
		}
		if url, ok := strings.CutPrefix(strings.TrimSpace(line), "The operator's API is at "); ok {
			s.operator = url
		}
	}
	if s.url == "" {
		return nil, fmt.Errorf("the shop did not open\nstdout: %s\nstderr: %s", s.stdout, s.stderr)
	}
	return s, nil
}

// readGreeting reads up to the last line that serve prints when it is open.
func readGreeting(r io.Reader) string {
	var text strings.Builder
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		text.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Stop it with") {
			break
		}
	}
	return text.String()
}

// shown returns the header of the token that the greeting shows in a line to paste.
func (s *running) shown(t *testing.T, name string) string {
	t.Helper()
	for line := range strings.Lines(s.stdout) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
			return "Authorization: Bearer " + strings.Trim(value, "'")
		}
	}
	t.Fatalf("got %s, want %s in it", s.stdout, name)
	return ""
}

func (s *running) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// wait returns the exit code.
func (s *running) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Fatalf("the shop did not end within %v\nstderr: %s", patience, s.stderr)
	}
	return s.cmd.ProcessState.ExitCode()
}
