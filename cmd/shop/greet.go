package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
)

// greeting is printed when a shop is open.
type greeting struct {
	settings              *app.Settings
	temporary             bool // the data folder is removed at the end
	madeSecret, madeToken bool // the buyers' and the operator's are the shop's own: they are shown
}

func (g greeting) print(w io.Writer, shop *app.Shop) error {
	var text strings.Builder
	s := g.settings
	fmt.Fprintf(&text, "The shop is open %s\n", place(shop.Addr()))
	if operator := shop.OperatorAddr(); operator != "" {
		fmt.Fprintf(&text, "The operator's API is %s\n", place(operator))
	} else if !s.Lab {
		text.WriteString("It has no operator's API: --operator-listen adds one, with metrics.\n")
	}
	if s.Lab {
		text.WriteString("Teaching mode: requests choose their strategy; GET /v1/strategies lists them.\n")
	}
	switch {
	case g.temporary:
		fmt.Fprintf(&text, "Its data is in %s and removed at the end.\n", s.Data)
	case s.Data != "":
		fmt.Fprintf(&text, "Its data is kept in %s\n", s.Data)
	}
	if s.Redis == "" {
		text.WriteString("Its locks are in this process: for a second instance, give both one --redis.\n")
	}
	if g.madeToken || g.madeSecret {
		text.WriteString("\nThe tokens of the operator and, for a day, of the buyer ann, as in the session of docs/api.md:\n")
	}
	if g.madeToken {
		fmt.Fprintf(&text, "  OPERATOR='%s'\n", s.OperatorToken.Reveal())
	}
	if g.madeSecret {
		tokens, err := auth.New(s.TokenSecret)
		if err != nil {
			return err
		}
		token, _, err := tokens.Mint("ann", 24*time.Hour)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "  TOKEN='%s'\n", token)
		if !g.temporary {
			fmt.Fprintf(&text, "For other buyers: shop token --data %s --buyer NAME\n", s.Data)
		}
	}
	stop := "SIGTERM"
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		stop = "Ctrl-C"
	}
	fmt.Fprintf(&text, "\nStop it with %s.\n", stop)
	_, err := io.WriteString(w, text.String())
	return err
}

// place describes an address. One that stands for all of a machine's addresses has no URL that holds everywhere:
// inside a container, localhost is the container.
func place(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return "on all addresses, port " + port
	}
	return "at http://" + addr
}
