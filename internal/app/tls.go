package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/tlsclient"
)

// mysqlTLS returns what TLS with MySQL has to be like; nil leaves it to the DSN.
func mysqlTLS(s Settings) (*tls.Config, error) {
	if s.MySQLTLS.IsZero() {
		return nil, nil
	}
	config, err := s.MySQLTLS.Config()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", whichFile("mysql", err), err)
	}
	return config, nil
}

// redisTLS makes TLS a part of the options, unless it is left to the URL.
func redisTLS(s Settings, o *redis.Options) error {
	if s.RedisTLS.IsZero() {
		return nil
	}
	config, err := s.RedisTLS.Config()
	if err != nil {
		return fmt.Errorf("%s: %w", whichFile("redis", err), err)
	}
	o.TLSConfig = config // go-redis adds the host name
	return nil
}

// whichFile names the settings of a server's files, of which one is wrong.
func whichFile(server string, err error) string {
	if errors.Is(err, tlsclient.ErrCA) {
		return server + "-ca"
	}
	return server + "-cert, " + server + "-key"
}

// plaintext reports whether a Redis answers a client without TLS. It is asked for
// nothing but PING, which any Redis answers at once, if only to refuse it. What a
// client with TLS says first it does not answer at all: it waits for a line's end.
func plaintext(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	if conn.SetDeadline(end) != nil {
		return false
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	answer := make([]byte, 1)
	n, err := conn.Read(answer)
	return err == nil && n == 1 && (answer[0] == '+' || answer[0] == '-')
}

// whichCA names the setting of the CA where the certificate is what was wrong.
func whichCA(err error, setting string) string {
	if errors.Is(err, tlsclient.ErrUntrusted) {
		return "; name the CA's file in " + setting
	}
	return ""
}
