package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/shop/internal/auth"
)

const (
	testSecret = "Vq3t6w9zC-F)J@NcRfUjXn2r5u8x/A?D"
	testToken  = "bXn8q2uT0vKx7Jd5sW1yZ4aC6eG9hL3m"
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

// "The token goes to standard output, alone; until when it is good goes to the
// log." The file and the variable hold the same secret.
func TestToken(t *testing.T) {
	t.Parallel()
	secret, err := auth.NewSecret(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.New(secret)
	if err != nil {
		t.Fatal(err)
	}
	path := secretFile(t, 0o600)
	for name, r := range map[string]result{
		"file":               shop(t, "token", "--buyer", "ann", "--token-secret-file", path),
		"file by variable":   shopWith(t, []string{"SHOP_TOKEN_SECRET_FILE=" + path}, "token", "--buyer", "ann", "--ttl", "720h"),
		"variable":           shopWith(t, []string{"SHOP_TOKEN_SECRET=" + testSecret}, "token", "--buyer", "ann", "--ttl", "10s"),
		"file over variable": shopWith(t, []string{"SHOP_TOKEN_SECRET=lab-only"}, "token", "--buyer", "ann", "--token-secret-file", path),
	} {
		r.want(t, exitDone, "token minted", "buyer=ann", "good_until=")
		token, alone := strings.CutSuffix(r.stdout, "\n")
		if buyer, err := tokens.Verify(token); buyer != "ann" || err != nil || !alone {
			t.Errorf("%s: got %q, which is %q, %v; want a token of ann", name, r.stdout, buyer, err)
		}
		if strings.Contains(r.stderr, token) || strings.Contains(r.stderr, testSecret) {
			t.Errorf("%s: got %s, want neither token nor secret in it", name, r.stderr)
		}
	}
}

// A mistake says what is right, never shows the secret, and mints nothing.
func TestToken_usage(t *testing.T) {
	t.Parallel()
	path := secretFile(t, 0o644)
	good := "SHOP_TOKEN_SECRET=" + testSecret
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		variable string
		args     []string
		want     string
	}{
		"no buyer":         {good, nil, "--buyer"},
		"no secret":        {"", []string{"--buyer", "ann"}, "--token-secret-file FILE or --data DIR, or set SHOP_TOKEN_SECRET"},
		"bad buyer":        {good, []string{"--buyer", "ann lee"}, `shop: invalid buyer "ann lee": want 1 to 64 letters`},
		"empty buyer":      {good, []string{"--buyer", ""}, "1 to 64 letters"},
		"ttl zero":         {good, []string{"--buyer", "ann", "--ttl", "0s"}, "want 1s to 720h"},
		"ttl too long":     {good, []string{"--buyer", "ann", "--ttl", "721h"}, "want 1s to 720h\n"},
		"ttl in days":      {good, []string{"--buyer", "ann", "--ttl", "7d"}, "--ttl"},
		"typed secret":     {"", []string{"--buyer", "ann", "--token-secret", testSecret}, "list of processes"},
		"demo secret":      {"SHOP_TOKEN_SECRET=lab-only", []string{"--buyer", "ann"}, `everyone knows "lab-only"`},
		"short secret":     {"SHOP_TOKEN_SECRET=s3cr3t", []string{"--buyer", "ann"}, "want at least 32"},
		"all read it":      {"", []string{"--buyer", "ann", "--token-secret-file", path}, "mode 0644"},
		"missing file":     {"", []string{"--buyer", "ann", "--token-secret-file", path + "x"}, "make one with: (umask 077; openssl rand -base64 32 > " + path + "x)"},
		"no data folder":   {"", []string{"--buyer", "ann", "--data", path + "x"}, "no shop in " + path + "x: "},
		"empty file":       {"", []string{"--buyer", "ann", "--token-secret-file", empty}, empty + " is empty"},
		"folder":           {"", []string{"--buyer", "ann", "--token-secret-file", filepath.Dir(path)}, "regular file"},
		"unexpected words": {good, []string{"ann"}, "unexpected argument"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var variables []string
			if c.variable != "" {
				variables = []string{c.variable}
			}
			r := shopWith(t, variables, append([]string{"token"}, c.args...)...)
			r.want(t, exitUsage, c.want, "shop token --help")
			if r.stdout != "" || strings.Contains(r.stderr, testSecret) {
				t.Errorf("got %s%s, want no token and no secret", r.stdout, r.stderr)
			}
		})
	}
	two := []string{good, "SHOP_TOKEN_SECRET_FILE=" + path}
	shopWith(t, two, "token", "--buyer", "ann").want(t, exitUsage, "want one secret, not both")
}

func TestToken_help(t *testing.T) {
	t.Parallel()
	shop(t, "token", "--help").want(t, exitDone, "Example", "shop token", "$SHOP_TOKEN_SECRET", "openssl rand", "shop:buyer", "--ttl=1h")
	shop(t, "--help").want(t, exitDone, "token")
}

// A shop with a secret sells to who shows a token of `shop token`, as its own
// lines to paste say, and to nobody else.
func TestServe_tokens(t *testing.T) {
	t.Parallel()
	path := secretFile(t, 0o600)
	s := startShop(t, "--token-secret-file", path)
	wantWords(t, paste(t, s.stdout, "SHOP_TOKEN_SECRET="+testSecret), `"supplied":15`, `"buyer":"ann","status":"paid"`)
	token := strings.TrimSpace(shop(t, "token", "--buyer", "ann", "--token-secret-file", path).stdout)
	buy(s.url, "key-1", "Authorization: Bearer "+token).want(t, http.StatusCreated)
	refused := buy(s.url, "key-2", "Shop-Buyer: ann")
	refused.want(t, http.StatusUnauthorized)
	if got := refused.header.Get("WWW-Authenticate"); got != `Bearer realm="shop"` {
		t.Errorf("got WWW-Authenticate %q, want Bearer", got)
	}
	s.signal(t, syscall.SIGTERM)
	s.wait(t)
	if s.stderr.Has(token) || s.stderr.Has(testSecret) {
		t.Errorf("got log %s, want neither token nor secret in it", s.stderr.String())
	}
}
