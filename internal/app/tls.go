package app

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// tlsFiles are the PEM files for the TLS connections to one server.
type tlsFiles struct {
	flag      string // prefix of the names of its flags
	ca        string // certificates of the CAs that may sign the server's; empty for the system's
	cert, key string // the client's own certificate, for servers that ask for one
}

func (s DatabaseSettings) mysqlTLS() tlsFiles {
	return tlsFiles{"mysql", s.MySQLCA, s.MySQLCert, s.MySQLKey}
}
func (s Settings) redisTLS() tlsFiles { return tlsFiles{"redis", s.RedisCA, s.RedisCert, s.RedisKey} }

// given reports whether any file is set, which requires TLS.
func (f tlsFiles) given() bool { return f.ca != "" || f.cert != "" || f.key != "" }

// config reads the files; nil if none is set. The server's certificate and host name are always verified. Errors name
// the flag and the file, and never show a key.
func (f tlsFiles) config() (*tls.Config, error) {
	if !f.given() {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("%s-ca: %w", f.flag, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s-ca: %s: want certificates in PEM, -----BEGIN CERTIFICATE-----", f.flag, f.ca)
		}
	}
	if (f.cert == "") != (f.key == "") {
		return nil, fmt.Errorf("%s-cert, %[1]s-key: want both files or none", f.flag)
	}
	if f.cert != "" {
		own, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("%[1]s-cert %[2]s, %[1]s-key %[3]s: %[4]w", f.flag, f.cert, f.key, err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

// refusedTLS reports a permanent error of TLS: the server does not speak it, its certificate cannot be verified, or it
// ended the handshake.
func refusedTLS(err error) bool {
	var (
		plaintext tls.RecordHeaderError
		untrusted *tls.CertificateVerificationError
		alert     tls.AlertError
		remote    *net.OpError // a server's alert after the handshake of TLS 1.3
	)
	return errors.As(err, &plaintext) || errors.As(err, &untrusted) || errors.As(err, &alert) ||
		errors.As(err, &remote) && remote.Op == "remote error"
}
