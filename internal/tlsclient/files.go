package tlsclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Files name PEM files. The zero value asks for no TLS.
type Files struct {
	CA   string // certificates of the CAs that may sign the server's; empty: the system's
	Cert string // the client's own certificate, for servers that ask for one
	Key  string // its private key
}

// IsZero reports whether no file is named.
func (f Files) IsZero() bool { return f == Files{} }

// Config reads the files. Its errors name the file, match
// ErrCA where it is the CA's, and never show a key.
func (f Files) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		roots, err := readCA(f.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = roots
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("a client's certificate and its key come together: want both files or none")
	}
	if f.Cert != "" {
		own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("client certificate %s with key %s: %w", f.Cert, f.Key, err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

func readCA(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator says which file
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCA, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%w %s: want certificates in PEM, -----BEGIN CERTIFICATE-----", ErrCA, path)
	}
	return roots, nil
}
