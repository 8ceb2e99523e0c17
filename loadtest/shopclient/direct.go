package shopclient

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// NewBuyer returns what NewConnections does for one goroutine, with one connection, which stands until another shop is
// asked or CloseIdleConnections. A crowd shares the machine with the shops, so its buyers are cheap: a Transport would
// add two goroutines for each connection. Connections to all shops would need more file descriptors than many machines
// allow.
func NewBuyer(timeout time.Duration) *http.Client {
	return &http.Client{Transport: &direct{timeout: timeout}, CheckRedirect: noRedirect}
}

// direct is a RoundTripper that writes each request and reads its answer itself.
type direct struct {
	timeout time.Duration
	conn    *conn // nil for none
}

type conn struct {
	net.Conn
	to   string // scheme and host
	in   *bufio.Reader
	out  *bufio.Writer
	used time.Time
}

// maxRest is how long a connection may rest: servers and load balancers close theirs after a minute or more.
const maxRest = 30 * time.Second

// RoundTrip implements http.RoundTripper. The answer has been read to its end.
func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, to := r.Context(), r.URL.Scheme+"://"+r.URL.Host
	deadline := time.Now().Add(d.timeout)
	if d.conn != nil && (d.conn.to != to || time.Since(d.conn.used) > maxRest) {
		d.CloseIdleConnections()
	}
	if d.conn == nil {
		dialled, err := dial(ctx, r.URL, deadline)
		if err != nil {
			return nil, err
		}
		d.conn = &conn{Conn: dialled, to: to, in: bufio.NewReaderSize(dialled, 2<<10), out: bufio.NewWriterSize(dialled, 1<<10)}
	}
	c := d.conn
	_ = c.SetDeadline(deadline) // of a connection that is closed, the exchange fails
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	answer, err := c.exchange(r)
	if err != nil || answer.Close {
		d.CloseIdleConnections()
	}
	c.used = time.Now()
	return answer, err
}

func dial(ctx context.Context, to *url.URL, deadline time.Time) (net.Conn, error) {
	dialer := &net.Dialer{Deadline: deadline}
	address := net.JoinHostPort(to.Hostname(), cmp.Or(to.Port(), to.Scheme)) // a scheme is a port's name, too
	if to.Scheme == "https" {
		return (&tls.Dialer{NetDialer: dialer}).DialContext(ctx, "tcp", address)
	}
	return dialer.DialContext(ctx, "tcp", address)
}

func (c *conn) exchange(r *http.Request) (*http.Response, error) {
	if err := r.Write(c.out); err != nil {
		return nil, err
	}
	if err := c.out.Flush(); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(c.in, r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// CloseIdleConnections is what http.Client asks for.
func (d *direct) CloseIdleConnections() {
	if d.conn != nil {
		_ = d.conn.Close()
		d.conn = nil
	}
}
