package tlsclient_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"example.com/shop/internal/tlsclient"
	"example.com/shop/internal/tlsclient/tlstest"
)

// "Its errors name the file and never show a key."
func TestFiles_Config(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewCA(t)
	pair, other := ca.Issue(t, "db"), ca.Issue(t, "db")
	good := tlsclient.Files{CA: tlstest.File(t, ca.PEM), Cert: tlstest.File(t, pair.Cert), Key: tlstest.File(t, pair.Key)}
	for name, c := range map[string]struct {
		change func(*tlsclient.Files)
		want   string // in the message; empty for good files
	}{
		"all":           {func(*tlsclient.Files) {}, ""},
		"CA alone":      {func(f *tlsclient.Files) { f.Cert, f.Key = "", "" }, ""},
		"client alone":  {func(f *tlsclient.Files) { f.CA = "" }, ""},
		"no CA file":    {func(f *tlsclient.Files) { f.CA = "/nowhere/ca.pem" }, "/nowhere/ca.pem"},
		"CA is a key":   {func(f *tlsclient.Files) { f.CA = f.Key }, good.Key + ": want certificates in PEM"},
		"no key":        {func(f *tlsclient.Files) { f.Key = "" }, "want both files or none"},
		"no cert":       {func(f *tlsclient.Files) { f.Cert = "" }, "want both files or none"},
		"no cert file":  {func(f *tlsclient.Files) { f.Cert = "/nowhere/cert.pem" }, "/nowhere/cert.pem"},
		"another's key": {func(f *tlsclient.Files) { f.Key = tlstest.File(t, other.Key) }, "does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := good
			c.change(&files)
			config, err := files.Config()
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "PRIVATE") {
					t.Errorf("got %v, want %q in it and no key", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if config.MinVersion != tls.VersionTLS12 || config.InsecureSkipVerify {
				t.Errorf("got version %x, skip %v, want TLS 1.2 at least, and verified", config.MinVersion, config.InsecureSkipVerify)
			}
			if (config.RootCAs != nil) != (files.CA != "") || len(config.Certificates) != min(1, len(files.Cert)) {
				t.Errorf("%+v: got roots %v and %d certificates", files, config.RootCAs != nil, len(config.Certificates))
			}
		})
	}
	if !(tlsclient.Files{}).IsZero() || good.IsZero() {
		t.Error("IsZero does not tell files from none")
	}
}
