package main

import (
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
		"redis":           {nil, redis, "(umask 077; openssl rand -base64 32 > token.secret)"},
		"operator":        {[]string{buyers}, mysql + " " + redis + " --operator-listen :0", "(umask 077; openssl rand -base64 32 > operator.token)"},
		"demo secret":     {[]string{"SHOP_TOKEN_SECRET=lab-only"}, "", "want 32 random bytes"},
		"short token":     {[]string{"SHOP_OPERATOR_TOKEN=s3cr3t"}, "", "want 32 random bytes"},
		"readable secret": {nil, "--token-secret-file " + readable, "mode 0644"},
		"readable token":  {nil, "--operator-token-file " + readable, "mode 0644"},
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
