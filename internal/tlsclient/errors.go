package tlsclient

import "errors"

// ErrCA means that the file of the CAs cannot be used.
var ErrCA = errors.New("CA file")

// Why a server is refused. Trying again does not help.
var (
	// ErrPlaintext means that the server does not speak TLS.
	ErrPlaintext = errors.New("it does not speak TLS, which is required")

	// ErrUntrusted means that no CA which is trusted here signed its certificate.
	ErrUntrusted = errors.New("its certificate was signed by no CA that is trusted here")

	// ErrExpired means that its certificate is not valid at this time.
	ErrExpired = errors.New("its certificate has expired or is not valid yet")

	// ErrName means that its certificate is for another host.
	ErrName = errors.New("its certificate is for another host name")

	// ErrHandshake is everything else: no common version, a client certificate
	// that the server wants or does not like.
	ErrHandshake = errors.New("client and server do not agree on TLS")
)
