package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/term"

	"example.com/shop/internal/app"
)

// greeting is what is told of a shop that is open.
type greeting struct {
	addr     string // host:port
	operator string // host:port of the operator's API; empty without one
	settings app.Settings
	at       *place
	sample   string // a SKU that can be bought; empty for none
}

// greet prints where the shop is and lines to paste.
func greet(w io.Writer, g greeting) error {
	var text strings.Builder
	where, _, _ := reachable(g.addr)
	fmt.Fprintf(&text, "The shop is open %s\n", where)
	if g.operator != "" {
		where, _, _ := reachable(g.operator)
		fmt.Fprintf(&text, "The operator's API is %s\n", where)
	} else if !g.settings.Lab {
		text.WriteString("It has no operator's API: --operator-listen adds one, with metrics.\n")
	}
	if g.settings.Lab {
		text.WriteString("Teaching mode: requests choose their strategy; GET /v1/strategies lists them.\n")
	}
	switch {
	case g.at.temporary:
		fmt.Fprintf(&text, "Its data is in %s and removed at the end.\n", g.at.dir)
	case g.at.dir != "":
		fmt.Fprintf(&text, "Its data is kept in %s\n", g.at.dir)
	}
	if g.at.embedded != nil {
		text.WriteString("It keeps its locks in this process: for a second instance, give both one --redis.\n")
	}
	if g.at.madeToken {
		g.operatorLines(&text)
	}
	if g.sample != "" {
		if err := g.buyerLines(&text); err != nil {
			return err
		}
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
