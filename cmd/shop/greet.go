package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
)

// greeting is printed when a shop is open.
type greeting struct {
	settings  *app.Settings
	temporary bool // the data folder is removed at the end

	// Which secrets the shop made itself; it prints their tokens.
	madeSecret, madeToken, madePayments bool
}

func (g greeting) print(w io.Writer, shop *app.Shop) error {
	var text strings.Builder
	s := g.settings
	fmt.Fprintf(&text, "The shop is open at %s\n", shop.URL())
	if operator := shop.OperatorAddr(); operator != "" {
		fmt.Fprintf(&text, "The operator's API is at http://%s\n", operator)
	} else {
		text.WriteString("It has no operator's API: --operator-listen adds one, with metrics.\n")
	}
	switch {
	case g.temporary:
		fmt.Fprintf(&text, "Its data is in %s and is removed at the end.\n", s.Data)
	case s.Data != "":
		fmt.Fprintf(&text, "Its data is kept in %s\n", s.Data)
	}
	if s.Redis == "" {
		text.WriteString("Its locks are in this process: a second shop on its data needs a --redis that both share.\n")
	}
	if g.madeToken || g.madePayments || g.madeSecret {
		text.WriteString("\nThe tokens of the operator, of a payment service and, for a day, of the buyer ann, as in the session of docs/api.md:\n")
	}
	if g.madeToken {
		fmt.Fprintf(&text, "  OPERATOR='%s'\n", s.OperatorToken.Reveal())
	}
	if g.madePayments {
		fmt.Fprintf(&text, "  PAYMENTS='%s'\n", s.PaymentsToken.Reveal())
	}
	if g.madeSecret {
		token, _, err := auth.New(s.TokenSecret).Mint("ann", 24*time.Hour)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "  TOKEN='%s'\n", token)
		if !g.temporary {
			fmt.Fprintf(&text, "For other buyers: shop token --data %s --buyer NAME\n", s.Data)
		}
	}
	text.WriteString("\nStop it with Ctrl-C or SIGTERM.\n")
	_, err := io.WriteString(w, text.String())
	return err
}
