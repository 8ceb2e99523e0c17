package ui

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// ErrAddress means that an address cannot be listened on.
var ErrAddress = errors.New("want host:port such as 127.0.0.1:8090")

// CheckAddress returns nil or an ErrAddress.
func CheckAddress(address string) error {
	_, err := listenOn(address)
	return err
}

// listenOn returns the address as net.Listen wants it. Without a host it is this
// machine alone: a page without passwords is not for everybody by default.
func listenOn(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("%q: %w", address, ErrAddress)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", fmt.Errorf("%q: %w, with a port of 0 to 65535", address, ErrAddress)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// private reports whether only this machine reaches the address.
func private(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().IsLoopback()
}
