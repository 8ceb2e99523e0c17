package main

import (
	"strings"
	"testing"
)

// A wildcard address has no URL that holds everywhere; Ctrl-C is for terminals.
func TestGreet(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "The shop is open at http://127.0.0.1:8080\n",
		"[::1]:8080":     "The shop is open at http://[::1]:8080\n",
		"[::]:8080":      "The shop is open on all addresses, port 8080\n",
		"0.0.0.0:8080":   "The shop is open on all addresses, port 8080\n",
	} {
		var text strings.Builder
		if err := greet(&text, addr, false, &place{}, "demo-mug"); err != nil {
			t.Fatal(err)
		}
		got := text.String()
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\nStop it with SIGTERM.\n") {
			t.Errorf("%s: got %s, want it to begin with %s and to end with SIGTERM", addr, got, want)
		}
		lines := curlLines(t, got)
		if everywhere := strings.Contains(want, "all addresses"); everywhere != strings.Contains(lines[1], "http://localhost:8080/") {
			t.Errorf("%s: got %s, want localhost for all addresses only", addr, lines[1])
		}
	}
}
