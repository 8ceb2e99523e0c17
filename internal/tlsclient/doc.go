// Package tlsclient makes a client's TLS configuration from PEM files, and tells
// why a server was refused in words that say what to do.
//
//	config, err := tlsclient.Files{CA: "ca.pem"}.Config()
//	...
//	if refused := tlsclient.Refusal(err); refused != nil {
//		return refused // asking again is pointless
//	}
//
// The server's certificate and its host name are always verified, with TLS 1.2 at
// least. There is no setting for less.
package tlsclient
