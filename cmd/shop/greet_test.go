package main

import (
	"strings"
	"testing"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
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
		if err := greet(&text, greeting{addr: addr, settings: app.Default(), at: &place{}, sample: "demo-mug"}); err != nil {
			t.Fatal(err)
		}
		got := text.String()
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\nStop it with SIGTERM.\n") {
			t.Errorf("%s: got %s, want it to begin with %s and to end with SIGTERM", addr, got, want)
		}
		if everywhere := strings.Contains(want, "all addresses"); everywhere != strings.Contains(pasted(got), "http://localhost:8080/v1/skus/demo-mug") {
			t.Errorf("%s: got %s, want localhost for all addresses only", addr, pasted(got))
		}
	}
}

// Secrets that somebody gave to the shop are not printed: a token is minted with
// the buyers', the operator knows its own.
func TestGreet_givenSecrets(t *testing.T) {
	t.Parallel()
	settings := app.Default()
	var err error
	if settings.TokenSecret, err = auth.NewSecret(testSecret); err != nil {
		t.Fatal(err)
	}
	if settings.OperatorToken, err = auth.NewSecret(testToken); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	shown := greeting{addr: "127.0.0.1:8080", operator: "127.0.0.1:8081", settings: settings, at: &place{}, sample: "demo-mug"}
	if err := greet(&text, shown); err != nil {
		t.Fatal(err)
	}
	wantWords(t, text.String(), "The operator's API is at http://127.0.0.1:8081\n", "  TOKEN=$(shop token --buyer ann)", `-H "Authorization: Bearer $TOKEN"`)
	if strings.Contains(text.String(), testSecret) || strings.Contains(text.String(), testToken) {
		t.Errorf("got %s, want no secret in it", text.String())
	}
}
