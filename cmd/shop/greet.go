package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"strings"
)

// greet prints where the shop is and, where there is something to buy, two lines
// to paste.
func greet(w io.Writer, addr string, lab bool, at *place, sample string) error {
	url := "http://" + reachable(addr)
	var text strings.Builder
	fmt.Fprintf(&text, "The shop is open at %s\n", url)
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
		fmt.Fprintf(&text, "\nBuy one, and see what is left:\n")
		fmt.Fprintf(&text, `  curl -i %s/v1/orders -H 'Content-Type: application/json' -H 'Idempotency-Key: %s' -d '{"lines":[{"sku":"%s","quantity":1}]}'`+"\n", url, key, sample)
		fmt.Fprintf(&text, "  curl %s/v1/skus/%s\n", url, sample)
	}
	text.WriteString("\nStop it with Ctrl-C.\n")
	_, err := io.WriteString(w, text.String())
	return err
}

// reachable turns an address that stands for all interfaces into one that a
// client on this machine can use.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return addr
}
