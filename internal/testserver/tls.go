package testserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA signs certificates for tests.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	PEM  []byte // its own certificate
}

// NewCA makes a CA that no system trusts.
func NewCA(t testing.TB) *CA {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "CA of " + t.Name()},
		NotBefore:             time.Now().Add(-48 * time.Hour),
		NotAfter:              time.Now().Add(48 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der := sign(t, template, template, key, key)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &CA{cert: cert, key: key, PEM: block("CERTIFICATE", der)}
}

// Certificate is one that a CA has signed, and its private key, for servers and clients. All are PEM.
type Certificate struct{ CA, Cert, Key []byte }

// Issue makes a certificate for hosts, names or IP addresses, that is valid now.
func (ca *CA) Issue(t testing.TB, hosts ...string) Certificate {
	t.Helper()
	return ca.issue(t, time.Now().Add(24*time.Hour), hosts)
}

// IssueExpired makes one that was valid until an hour ago.
func (ca *CA) IssueExpired(t testing.TB, hosts ...string) Certificate {
	t.Helper()
	return ca.issue(t, time.Now().Add(-time.Hour), hosts)
}

func (ca *CA) issue(t testing.TB, end time.Time, hosts []string) Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: t.Name()},
		NotBefore:    time.Now().Add(-24 * time.Hour),
		NotAfter:     end,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Certificate{
		CA:   ca.PEM,
		Cert: block("CERTIFICATE", sign(t, template, ca.cert, key, ca.key)),
		Key:  block("PRIVATE KEY", private),
	}
}

// File writes PEM to a file that goes with the test.
func File(t testing.TB, text []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// TLS returns the address of a server that speaks nothing but TLS and passes everything on to the one given.
func TLS(t testing.TB, server string, config *tls.Config) (addr string) {
	t.Helper()
	return Relay(t, server, func(client, server net.Conn) {
		secured := tls.Server(client, config)
		BothWays(secured, server,
			func() { _, _ = io.Copy(server, secured) },
			func() { _, _ = io.Copy(secured, server) })
	})
}

// StartMySQLTLS starts a MySQL for this test alone. It offers TLS and takes clients without it, too.
func StartMySQLTLS(t testing.TB, c Certificate) *Server {
	t.Helper()
	return own(t, mysqlKind().withTLS(c))
}

// StartMariaDBTLS is StartMySQLTLS on a MariaDB.
func StartMariaDBTLS(t testing.TB, c Certificate) *Server {
	t.Helper()
	return own(t, mariadbKind().withTLS(c))
}

func (k kind) withTLS(c Certificate) kind {
	const ca, cert, key = "/etc/test-ca.pem", "/etc/test-cert.pem", "/etc/test-key.pem"
	k.files = map[string][]byte{ca: c.CA, cert: c.Cert, key: c.Key}
	k.command = append(k.command, "--ssl-ca="+ca, "--ssl-cert="+cert, "--ssl-key="+key)
	return k
}

// StartMySQLPlaintext starts a MySQL for this test alone that has no TLS. By default it would make its own certificate.
func StartMySQLPlaintext(t testing.TB) *Server {
	t.Helper()
	k := mysqlKind()
	k.command = append(k.command, "--tls-version=")
	return own(t, k)
}
