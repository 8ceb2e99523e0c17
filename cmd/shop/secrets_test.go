package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/shop/internal/app"
)

// Serve refuses secrets that are published, short or readable by all users. It refuses to start on servers without a
// secret. Each error says what to do.
func TestServe_secrets(t *testing.T) {
	t.Parallel()
	const buyers, operator = "SHOP_TOKEN_SECRET=" + testSecret, "SHOP_OPERATOR_TOKEN=" + testToken
	readable := secretFile(t, 0o644)
	mysql, redis := "--mysql shop:pw@tcp(127.0.0.1:1)/shop", "--redis 127.0.0.1:1"
	for name, c := range map[string]struct {
		variables []string
		args      string
		want      string
	}{
		"mysql":           {nil, mysql, "(umask 077; openssl rand -base64 32 > token.secret)"},
		"operator":        {[]string{buyers}, mysql + " " + redis + " --operator-listen :0", "(umask 077; openssl rand -base64 32 > operator.token)"},
		"demo secret":     {[]string{"SHOP_TOKEN_SECRET=lab-only"}, "", "want 32 random bytes"},
		"readable secret": {nil, "--token-secret-file " + readable, "mode 0644"},
		"token and file":  {[]string{operator, "SHOP_OPERATOR_TOKEN_FILE=" + readable}, "", "want one secret, not both"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shopWith(t, append(c.variables, "TMPDIR="+t.TempDir()), append([]string{"serve"}, strings.Fields(c.args)...)...)
			r.want(t, app.ExitUsage, c.want, "shop serve --help")
			if strings.Contains(r.stderr, testSecret) || strings.Contains(r.stderr, testToken) {
				t.Errorf("got %s, want no secret in it", r.stderr)
			}
		})
	}
}

// "If the shop made both the secret of buyers' tokens and the payments token, buyers may pay without a payment service." With a
// payments token of the operator's they may not.
func TestServe_buyersPay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"both made":           {nil, http.StatusOK},
		"payments token file": {[]string{"--payments-token-file", secretFile(t, 0o600)}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startShop(t, append(c.args, "--data", filepath.Join(t.TempDir(), "data"))...)
			as := s.shown(t, "TOKEN=")
			placed := buy(s.url, "key-1", as).Want(t, http.StatusCreated)
			send(http.MethodPost, s.url+placed.Header.Get("Location")+"/pay", "", as).Want(t, c.want)
			if !strings.Contains(s.greeting(t), "For other buyers: shop token --data ") {
				t.Errorf("got %s, want how to make tokens", s.greeting(t))
			}
		})
	}
}

// "127.0.0.1 with the next port, or a free port if the shop takes one."
func TestNextPort(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "127.0.0.1:8081", ":9000": "127.0.0.1:9001", "[::1]:65534": "127.0.0.1:65535",
		"127.0.0.1:0": "127.0.0.1:0", ":65535": "127.0.0.1:0", "nowhere": "127.0.0.1:0",
	} {
		if got := nextPort(listen); got != want {
			t.Errorf("%s: got %s, want %s", listen, got, want)
		}
	}
}

// "An interrupted call leaves the complete file or none": if the first start cannot write its secret, the
// next start can.
func TestServe_secretInterrupted(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	output := shell(t, "ulimit -f 0; shop serve --listen 127.0.0.1:0 --data "+data+" 2>&1 || true")
	if left, err := os.ReadDir(data); err != nil || len(left) > 0 || !strings.Contains(output, "file too large") {
		t.Fatalf("got %v, %v in the folder after %s, want a failed write that leaves no file", left, err, output)
	}
	startShop(t, "--data", data)
}
