//go:build unix

package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/httpapi/contract"
	"example.com/shop/internal/testserver"
)

// A temporary folder is gone at the end; one of the user's own is not, and is not supplied twice.
func TestServe_data(t *testing.T) {
	t.Parallel()
	s := startShop(t)
	folder := textBetween(t, s.greeting(t), "The data is in ", " and is removed")
	if _, err := os.Stat(folder); err != nil {
		t.Error(err)
	}
	s.signal(t, syscall.SIGINT)
	if code := s.wait(t); code != app.ExitDone {
		t.Errorf("got exit code %d, want %d\n%s", code, app.ExitDone, s.stderr)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("got %v for %s, want it removed", err, folder)
	}

	kept := filepath.Join(t.TempDir(), "new", "folder")
	first := startShop(t, "--data", kept)
	ann, operator := first.shown(t, "TOKEN="), first.shown(t, "OPERATOR=")
	buy(first.url, "key-1", ann).Want(t, http.StatusCreated)
	for _, name := range []string{"token.secret", "operator.token"} {
		if info, err := os.Stat(filepath.Join(kept, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v; want mode 0600", name, info, err)
		}
	}
	first.signal(t, syscall.SIGTERM)
	first.wait(t)
	again := startShop(t, "--data", kept)
	replay := buy(again.url, "key-1", ann).Want(t, http.StatusCreated) // "With --data it keeps them in that folder"
	contract.Operator().Send(http.MethodGet, again.operator+"/v1/audit", "", operator).Want(t, http.StatusOK)
	bob := strings.TrimSpace(shop(t, "token", "--buyer", "bob", "--data", kept).stdout)
	buy(again.url, "key-1", "Authorization: Bearer "+bob).Want(t, http.StatusCreated)
	if replay.Header.Get("Idempotent-Replayed") != "true" {
		t.Error("got a new order after a restart, want the old one")
	}
	shop(t, "audit", "--data", kept).want(t, app.ExitDone, "2 order lines,", "0 differences")
}

// "SIGTERM ends an instance": readiness fails first, requests in progress finish, and the exit code is 0. A second
// signal at once aborts nothing: "timeout(1) signals the process and then its group".
func TestServe_terminated(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := startShop(t, "--data", data, "--drain-delay", "5s")
	body, rest := io.Pipe() // of an order that is half sent
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/orders", body)
	testserver.Must(t, err)
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Idempotency-Key": {"key-1"}, "Authorization": {"Bearer " + bearer(s.shown(t, "TOKEN="))},
	}
	order := make(chan int, 1)
	go func() {
		status := 0
		if w, err := http.DefaultClient.Do(r); err == nil && w.Body.Close() == nil {
			status = w.StatusCode
		}
		order <- status
	}()
	_, err = io.WriteString(rest, `{"lines":[{"sku":`)
	testserver.Must(t, err)
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCONT} { // so that both come at once
		s.signal(t, signal)
	}
	testserver.Until(t, "readiness fails", 5*time.Second, func() bool {
		return send(http.MethodGet, s.url+"/readyz", "").Status == http.StatusServiceUnavailable
	})
	_, err = io.WriteString(rest, `"demo-mug","quantity":1}]}`)
	testserver.Must(t, errors.Join(err, rest.Close()))
	if got := <-order; got != http.StatusCreated {
		t.Errorf("got status %d, want the order placed", got)
	}
	if code := s.wait(t); code != app.ExitDone {
		t.Errorf("got exit code %d, want %d\n%s", code, app.ExitDone, s.stderr)
	}
	shop(t, "audit", "--data", data).want(t, app.ExitDone, "1 order line,", "0 differences")
}

// "A second signal kills the process".
func TestServe_secondSignal(t *testing.T) {
	t.Parallel()
	s := startShop(t, "--drain-delay", "1m")
	s.signal(t, syscall.SIGTERM)
	testserver.Until(t, "readiness fails", patience, func() bool {
		return send(http.MethodGet, s.url+"/readyz", "").Status == http.StatusServiceUnavailable
	})
	testserver.Until(t, "the next signal ends it", patience, func() bool {
		s.signal(t, syscall.SIGTERM)
		select {
		case <-s.ended:
			return true
		default:
			return false
		}
	})
	if status := s.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("got %v, want a process that the signal killed", s.cmd.ProcessState)
	}
}

// "A second shop on a folder is refused, unless both shops have their locks in Redis", until the first has ended.
func TestServe_folderInUse(t *testing.T) {
	t.Parallel()
	data, withRedis := t.TempDir(), append(withSecret(t), "--redis", lockServer(t))
	refused := func(args ...string) {
		t.Helper()
		args = append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, args...)
		shop(t, args...).want(t, app.ExitFailed, "another shop serves "+data, "--redis")
	}
	first := startShop(t, "--data", data)
	refused()
	refused(withRedis...)
	first.signal(t, syscall.SIGKILL)
	first.wait(t)
	startShop(t, append(withRedis, "--data", data)...)
	startShop(t, append(withRedis, "--data", data)...)
	refused()
}

// Ctrl-C while a server is waited for is told as that and nothing more.
func TestServe_interruptedWait(t *testing.T) {
	t.Parallel()
	const addr = closedPort
	for name, args := range map[string][]string{
		"mysql": {"--mysql", "shop:geheim@tcp(" + addr + ")/shop"},
		"redis": {"--redis", addr},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := command(t, []string{"TMPDIR=" + t.TempDir()}, slices.Concat([]string{"serve"}, withSecret(t), args)...)
			stderr := &testserver.LogBuffer{}
			c.Stderr = stderr
			testserver.Must(t, c.Start())
			t.Cleanup(func() { _ = c.Process.Kill() })
			waiting := "waiting for " + name + " at " + addr
			testserver.Until(t, waiting, patience, func() bool { return stderr.Has(waiting) })
			testserver.Must(t, c.Process.Signal(syscall.SIGINT))
			_ = c.Wait()
			if code := c.ProcessState.ExitCode(); code != app.ExitFailed {
				t.Errorf("got exit code %d, want %d", code, app.ExitFailed)
			}
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			if len(lines) != 2 || lines[1] != "shop: interrupted" {
				t.Errorf("got %q, want a line about the wait and a line about the interruption", lines)
			}
		})
	}
}
