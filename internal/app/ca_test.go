package app_test

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

	"example.com/shop/internal/testserver"
)

// authority signs certificates for tests. No system trusts it.
type authority struct {
	PEM  []byte // its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newCA makes an authority.
func newCA(t testing.TB) *authority {
	t.Helper()
	ca := &authority{cert: &x509.Certificate{
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

// certificate has a certificate for servers and clients, its private key, and the CA that has signed it. All are PEM.
type certificate struct{ CA, Cert, Key []byte }

// issue makes a certificate for a host name. It is valid for the time left, or expired if that is negative: it began a
// day ago.
func (ca *authority) issue(t testing.TB, host string, left time.Duration) certificate {
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
	testserver.Must(t, err)
	return certificate{CA: ca.PEM, Cert: cert, Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
}

// sign makes a key and a certificate of its owner, which a CA without a key signs with this one.
func (ca *authority) sign(t testing.TB, template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testserver.Must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, cmp.Or(ca.key, key))
	testserver.Must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}
