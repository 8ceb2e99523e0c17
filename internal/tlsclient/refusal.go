package tlsclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Refusal returns err behind the one of this package's errors that says why TLS
// with this server cannot work, or err itself if it is behind one already. It
// returns nil for every other error, such as one of the network, which may pass.
func Refusal(err error) error {
	for _, known := range []error{ErrPlaintext, ErrUntrusted, ErrExpired, ErrName, ErrHandshake} {
		if errors.Is(err, known) {
			return err
		}
	}
	if r := reason(err); r != nil {
		return fmt.Errorf("%w: %w", r, err)
	}
	return nil
}

func reason(err error) error {
	var (
		noTLS     tls.RecordHeaderError
		untrusted x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		name      x509.HostnameError
		verify    *tls.CertificateVerificationError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &noTLS):
		return ErrPlaintext
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return ErrExpired
	case errors.As(err, &name):
		return ErrName
	case errors.As(err, &untrusted), errors.As(err, &verify):
		return ErrUntrusted
	case isAlert(err), isHandshake(err):
		return ErrHandshake
	}
	return nil
}

// isAlert reports whether the server ended TLS, and said so. Its alert has no type
// that could be asked for.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// isHandshake reports whether this side ended TLS for another reason than the
// certificate: most such errors of crypto/tls are nothing but text.
func isHandshake(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.HasPrefix(err.Error(), "tls: ") {
			return true
		}
	}
	return false
}
