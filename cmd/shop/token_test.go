package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
)

const (
	testSecret = "AwoRGB8mLTQ7QklQV15lbHN6gYiPlp2kq7K5wMfO1dw="
	testToken  = "BRAbJjE8R1JdaHN+iZSfqrXAy9bh7PcCDRgjLjlET1o="
)

// secretFile writes a secret as --help shows it.
func secretFile(t *testing.T, mode os.FileMode) string {
	t.Helper()
	return writeSecret(t, testSecret, mode)
}

func writeSecret(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text+"\n"), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// withSecret returns the flags of a shop that knows its buyers by testSecret.
func withSecret(t *testing.T) []string {
	t.Helper()
	return []string{"--token-secret-file", secretFile(t, 0o600)}
}

// as returns the header by which such a shop knows a buyer.
func as(t *testing.T, buyer string) string {
	t.Helper()
	return "Authorization: Bearer " + strings.TrimSpace(shopWith(t, []string{"SHOP_TOKEN_SECRET=" + testSecret}, "token", "--buyer", buyer).stdout)
}

// "Standard output gets the tokens only, one on each line, in the order of --buyer. The log says when they expire." The
// file and the variable hold the same secret.
func TestToken(t *testing.T) {
	t.Parallel()
	secret, err := auth.NewSecret(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	tokens := auth.New(secret)
	path := secretFile(t, 0o600)
	for name, r := range map[string]result{
		"file":             shop(t, "token", "--buyer", "ann", "--token-secret-file", path),
		"file by variable": shopWith(t, []string{"SHOP_TOKEN_SECRET_FILE=" + path}, "token", "--buyer", "ann", "--ttl", "720h"),
		"variable":         shopWith(t, []string{"SHOP_TOKEN_SECRET=" + testSecret}, "token", "--buyer", "ann", "--ttl", "10s"),
	} {
		r.want(t, app.ExitDone, "tokens minted", "buyers=1", "good_until=")
		token, alone := strings.CutSuffix(r.stdout, "\n")
		if buyer, err := tokens.Verify(token); buyer != "ann" || err != nil || !alone {
			t.Errorf("%s: got %q, which is %q, %v; want a token of ann", name, r.stdout, buyer, err)
		}
		if strings.Contains(r.stderr, token) || strings.Contains(r.stderr, testSecret) {
			t.Errorf("%s: got %s, want neither token nor secret in it", name, r.stderr)
		}
	}
	r := shop(t, "token", "--buyer", "bob", "--buyer=ann", "--token-secret-file", path)
	r.want(t, app.ExitDone, "buyers=2")
	var buyers []string
	for token := range strings.Lines(r.stdout) {
		buyer, err := tokens.Verify(strings.TrimSuffix(token, "\n"))
		buyers = append(buyers, fmt.Sprint(buyer, err))
	}
	if want := []string{"bob<nil>", "ann<nil>"}; !slices.Equal(buyers, want) {
		t.Errorf("got tokens of %q, want %q", buyers, want)
	}
}

// A mistake says what is right, never shows the secret, and mints nothing.
func TestToken_usage(t *testing.T) {
	t.Parallel()
	path := secretFile(t, 0o644)
	good := "SHOP_TOKEN_SECRET=" + testSecret
	for name, c := range map[string]struct {
		variable string
		args     []string
		want     string
	}{
		"no buyer":       {good, nil, "--buyer"},
		"no secret":      {"", []string{"--buyer", "ann"}, "--token-secret-file FILE or --data DIR, or set SHOP_TOKEN_SECRET"},
		"bad buyer":      {good, []string{"--buyer", "ann lee"}, `shop: invalid buyer "ann lee": want 1 to 64 letters`},
		"ttl too long":   {good, []string{"--buyer", "ann", "--ttl", "721h"}, "want 1s to 720h\n"},
		"missing file":   {"", []string{"--buyer", "ann", "--token-secret-file", path + "x"}, "make one with: (umask 077; openssl rand -base64 32 > " + path + "x)"},
		"no data folder": {"", []string{"--buyer", "ann", "--data", path + "x"}, "no shop in " + path + "x: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var variables []string
			if c.variable != "" {
				variables = []string{c.variable}
			}
			r := shopWith(t, variables, append([]string{"token"}, c.args...)...)
			r.want(t, app.ExitUsage, c.want, "shop token --help")
			if r.stdout != "" || strings.Contains(r.stderr, testSecret) {
				t.Errorf("got %s%s, want no token and no secret", r.stdout, r.stderr)
			}
		})
	}
	two := []string{good, "SHOP_TOKEN_SECRET_FILE=" + path}
	shopWith(t, two, "token", "--buyer", "ann").want(t, app.ExitUsage, "want one secret, not both")
}
