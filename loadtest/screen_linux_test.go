package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"example.com/shop/loadtest/cli"
)

// openTerminal returns a terminal and what is written to it, which can be had once
// the terminal is closed.
func openTerminal(t *testing.T) (terminal *os.File, written func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	var number uint32
	unlocked := int32(0)
	for request, value := range map[uintptr]unsafe.Pointer{
		syscall.TIOCGPTN: unsafe.Pointer(&number), syscall.TIOCSPTLCK: unsafe.Pointer(&unlocked),
	} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(value)); errno != 0 {
			t.Fatal(errno)
		}
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	var all bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&all, master) // until the terminal is closed
	}()
	t.Cleanup(func() { _ = terminal.Close(); <-done; _ = master.Close() })
	return terminal, func() string {
		_ = terminal.Close()
		<-done
		return all.String()
	}
}

// Colour is for terminals alone, and not for those who say NO_COLOR or whose
// terminal is dumb; there, progress is lines.
func TestRun_terminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env        map[string]string
		colour, up bool // escapes in the table; progress in place
	}{
		"a terminal":     {nil, true, true},
		"NO_COLOR":       {map[string]string{"NO_COLOR": "1"}, false, true},
		"NO_COLOR empty": {map[string]string{"NO_COLOR": ""}, true, true},
		"TERM=dumb":      {map[string]string{"TERM": "dumb"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := newLab(t, "honest", false)
			tty, written := openTerminal(t)
			args := []string{"--target", shop.URL, "--strategies", "honest", "--buyers", "20", "--stock", "5"}
			if code := run(t.Context(), args, func(key string) string { return c.env[key] }, tty, tty); code != cli.OK {
				t.Errorf("exit code: got %d, want %d", code, cli.OK)
			}
			all := written()
			if got := strings.Contains(all, "\x1b[31moversold\x1b[0m"); got != c.colour {
				t.Errorf("coloured verdict: got %v, want %v in\n%q", got, c.colour, all)
			}
			if got := strings.Contains(all, "100% ["); got != c.up {
				t.Errorf("bar: got %v, want %v in\n%q", got, c.up, all)
			}
			if !c.up && !strings.Contains(all, "honest: 20 orders, 0 refused\r\n") {
				t.Errorf("want lines of progress in\n%q", all)
			}
		})
	}
}
