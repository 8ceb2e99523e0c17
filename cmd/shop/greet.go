package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/term"
)

// greet prints where the shop is and, where there is something to buy, two lines
// to paste.
func greet(w io.Writer, addr string, lab bool, at *place, sample string) error {
	where, url, note := reachable(addr)
	var text strings.Builder
	fmt.Fprintf(&text, "The shop is open %s\n", where)
	if lab {
		text.WriteString("Teaching mode: requests choose their strategy; GET /v1/strategies lists them.\n")
	}
	switch {
	case at.temporary:
		fmt.Fprintf(&text, "Its data is in %s and removed at the end.\n", at.dir)
	case at.dir != "":
		fmt.Fprintf(&text, "Its data is kept in %s\n", at.dir)
	}
	if at.embedded != nil {
		text.WriteString("It keeps its locks in this process: for a second instance, give both one --redis.\n")
	}
	if sample != "" {
		key := strings.ToLower(rand.Text()[:12])
		fmt.Fprintf(&text, "\nBuy one%s, and see what is left:\n", note)
		fmt.Fprintf(&text, `  curl -i %s/v1/orders -H 'Content-Type: application/json' -H 'Idempotency-Key: %s' -d '{"lines":[{"sku":"%s","quantity":1}]}'`+"\n", url, key, sample)
		fmt.Fprintf(&text, "  curl %s/v1/skus/%s\n", url, sample)
	}
	fmt.Fprintf(&text, "\nStop it with %s.\n", howToStop(w))
	_, err := io.WriteString(w, text.String())
	return err
}

// reachable says where an address is, and by which URL a client reaches it. One
// that stands for all of a machine's addresses has no URL that holds everywhere:
// inside a container, localhost is the container.
func reachable(addr string) (where, url, note string) {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || (ip != nil && ip.IsUnspecified())) {
		return "on all addresses, port " + port,
			"http://" + net.JoinHostPort("localhost", port),
			" from this machine (elsewhere, write its name for localhost)"
	}
	return "at http://" + addr, "http://" + addr, ""
}

// howToStop returns what ends the shop: Ctrl-C is for who sits at its terminal.
func howToStop(w io.Writer) string {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return "Ctrl-C"
	}
	return "SIGTERM"
}
