package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asCurl does what the lines that serve prints, and the README's session, want of
// curl, for machines that have none.
func asCurl(arguments []string) {
	method, url, body, withHeader := http.MethodGet, "", "", false
	var headers []string
	for i := 0; i < len(arguments); i++ {
		switch word := arguments[i]; word {
		case "-s":
		case "-i":
			withHeader = true
		case "-X":
			i++
			method = arguments[i]
		case "-H":
			i++
			headers = append(headers, arguments[i])
		case "-d":
			i++
			method, body = http.MethodPost, arguments[i]
		default:
			url = word
		}
	}
	got := send(method, url, body, headers...)
	if withHeader {
		fmt.Printf("HTTP/1.1 %d\r\n", got.status)
		_ = got.header.Write(os.Stdout)
		fmt.Print("\r\n")
	}
	fmt.Print(got.body)
}

// pasted returns the lines to paste of a greeting.
func pasted(greeting string) string {
	var lines strings.Builder
	for line := range strings.Lines(greeting) {
		if command, indented := strings.CutPrefix(line, "  "); indented {
			lines.WriteString(command)
		}
	}
	return lines.String()
}

// paste runs them and returns what they print.
func paste(t *testing.T, greeting string, variables ...string) string {
	t.Helper()
	return shell(t, pasted(greeting), variables...)
}

// shell runs a script in a shell that has shop, and curl or what does for it, and
// returns what it prints.
func shell(t *testing.T, script string, variables ...string) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	names := []string{"shop"}
	if _, err := exec.LookPath("curl"); err != nil {
		names = append(names, "curl")
	}
	for _, name := range names {
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	sh := exec.CommandContext(ctx, "sh", "-eu", "-c", script)
	sh.WaitDelay = time.Second // for what it has started
	sh.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), asProgram+"=1")
	sh.Env = append(sh.Env, variables...)
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\nof: %s", err, out, script)
	}
	return string(out)
}

func wantWords(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("got %s, want %s in it", text, word)
		}
	}
}

// The lines that serve prints work when pasted, and pasted twice change nothing.
func TestServe_paste(t *testing.T) {
	t.Parallel()
	s := startShop(t, "--data", t.TempDir())
	for range 2 {
		wantWords(t, paste(t, s.stdout),
			`"sku":"my-mug","price":{"minor":1250,"currency":"EUR"},"supplied":15`, `"ok":true`,
			`"buyer":"ann","status":"paid"`, `"available":999,"reserved":0,"sold":1`)
	}
}

// The same in teaching mode, where buyers show nothing and there is no operator
// unless one is asked for.
func TestServe_pasteLab(t *testing.T) {
	t.Parallel()
	s := startShop(t, "--lab")
	if strings.Contains(s.stdout, "operator") {
		t.Errorf("got %s, want no operator", s.stdout)
	}
	wantWords(t, paste(t, s.stdout), `"buyer":"guest","status":"paid"`, `"sold":1`)
	operated := startShop(t, "--lab", "--operator-listen", "127.0.0.1:0")
	wantWords(t, paste(t, operated.stdout), `"supplied":15`, `"buyer":"guest","status":"paid"`)
}
