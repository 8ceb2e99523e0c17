package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"

	"example.com/shop/internal/auth"
)

// greetedFor is how long the token that greet prints is good; `shop token` mints
// others.
const greetedFor = 24 * time.Hour

// Parts of the lines to paste. Each line is indented by two blanks.
const (
	sendsJSON  = `-H 'Content-Type: application/json'`
	asBuyer    = ` -H "Authorization: Bearer $TOKEN"`
	asOperator = ` -H "Authorization: Bearer $OPERATOR"`
	takeID     = `tee -a /dev/stderr | sed -n 's/.*"id":"\([^"]*\)".*/\1/p'`
)

// operatorLines shows how to put a SKU up for sale and to restock it, with the
// token that this shop made.
func (g greeting) operatorLines(w io.Writer) {
	_, url, note := reachable(g.operator)
	fmt.Fprintf(w, "\nAs the operator%s, put something up for sale, get more of it, and see that the accounts agree:\n", note)
	fmt.Fprintf(w, "  OPERATOR=%s\n", quote(g.settings.OperatorToken.Reveal()))
	fmt.Fprintf(w, "  curl -i %s/v1/skus%s %s -d '%s'\n", url, asOperator, sendsJSON,
		`{"sku":"my-mug","units":10,"price":{"minor":1250,"currency":"EUR"}}`)
	fmt.Fprintf(w, "  curl -i %s/v1/skus/my-mug/movements%s %s -H 'Idempotency-Key: %s' -d '%s'\n", url, asOperator, sendsJSON, newKey(),
		`{"kind":"supply","units":5}`)
	fmt.Fprintf(w, "  curl %s/v1/audit%s\n", url, asOperator)
}

// buyerLines shows how to buy the sample and to pay for it.
func (g greeting) buyerLines(w io.Writer) error {
	_, url, note := reachable(g.addr)
	who := asBuyer
	switch {
	case g.at.madeSecret:
		tokens, err := auth.New(g.settings.TokenSecret)
		if err != nil {
			return err
		}
		token, _, err := tokens.Mint("ann", greetedFor)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "\nAs the buyer ann%s, buy one, pay for it, and see what is left. For other buyers: shop token --data %s --buyer NAME\n", note, quote(g.at.dir))
		fmt.Fprintf(w, "  TOKEN=%s\n", token)
	case !g.settings.TokenSecret.IsZero():
		fmt.Fprintf(w, "\nAs the buyer ann%s, buy one, pay for it, and see what is left:\n", note)
		fmt.Fprintln(w, "  TOKEN=$(shop token --buyer ann)   # with the secret that this shop has")
	default:
		fmt.Fprintf(w, "\nBuy one%s, pay for it, and see what is left:\n", note)
		who = ""
	}
	fmt.Fprintf(w, `  ORDER=$(curl -s %s/v1/orders%s %s -H 'Idempotency-Key: %s' -d '{"lines":[{"sku":"%s","quantity":1}]}' | %s)`+"\n",
		url, who, sendsJSON, newKey(), g.sample, takeID)
	fmt.Fprintf(w, "  curl -X POST %s/v1/orders/$ORDER/pay%s\n", url, who)
	fmt.Fprintf(w, "  curl %s/v1/skus/%s\n", url, g.sample)
	return nil
}

// newKey returns an idempotency key of its own for each line, so that pasting it
// twice changes nothing.
func newKey() string { return strings.ToLower(rand.Text()[:12]) }

// quote makes one word of a text for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
