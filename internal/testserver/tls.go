package testserver

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// CA signs certificates for tests. No system trusts it.
type CA struct {
	PEM  []byte // its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes a CA.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{cert: &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "CA of " + t.Name()},
		NotBefore:             time.Now().Add(-48 * time.Hour),
		NotAfter:              time.Now().Add(48 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}}
	ca.PEM, ca.key = ca.sign(t, ca.cert)
	return ca
}

// Certificate is one that a CA has signed, and its private key, for servers and clients. All are PEM.
type Certificate struct{ CA, Cert, Key []byte }

// Issue makes a certificate for a host name. It is valid for the time left, or expired if that is negative: it began a
// day ago.
func (ca *CA) Issue(t testing.TB, host string, left time.Duration) Certificate {
	t.Helper()
	cert, key := ca.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: t.Name()},
		NotBefore:    time.Now().Add(-24 * time.Hour),
		NotAfter:     time.Now().Add(left),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     []string{host},
	})
	private, err := x509.MarshalPKCS8PrivateKey(key)
	Must(t, err)
	return Certificate{CA: ca.PEM, Cert: cert, Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
}

// sign makes a key and a certificate of its owner, which a CA without a key signs with this one.
func (ca *CA) sign(t testing.TB, template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, cmp.Or(ca.key, key))
	Must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// StartMySQLTLS starts a MySQL for this test alone. It offers TLS and also takes clients without it.
func StartMySQLTLS(t testing.TB, c Certificate) *Server { return mysqlKind().startTLS(t, c) }

// StartMariaDBTLS is StartMySQLTLS on a MariaDB.
func StartMariaDBTLS(t testing.TB, c Certificate) *Server { return mariadbKind().startTLS(t, c) }

func (k kind) startTLS(t testing.TB, c Certificate) *Server {
	t.Helper()
	const ca, cert, key = "/etc/test-ca.pem", "/etc/test-cert.pem", "/etc/test-key.pem"
	k.files = map[string][]byte{ca: c.CA, cert: c.Cert, key: c.Key}
	k.command = append(k.command, "--ssl-ca="+ca, "--ssl-cert="+cert, "--ssl-key="+key)
	return Start(t, k.start)
}
