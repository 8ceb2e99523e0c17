package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	readBuffer = 2 << 10 // longer than an order
	maxAnswer  = 64 << 10
)

var errTooLong = errors.New("the answer is too long")

// conn is a connection to a shop that is dialled again when it was lost. It is
// for one goroutine.
type conn struct {
	addr    string
	net     net.Conn // nil: none yet, or lost
	read    *bufio.Reader
	request []byte
	body    bytes.Buffer
}

// answer is valid until the next request.
type answer struct {
	status int
	body   []byte
}

// open makes sure that a connection stands, by a request that costs the shop
// next to nothing: one that stays silent would be closed.
func (c *conn) open(ctx context.Context, deadline time.Time) error {
	c.write("GET /healthz HTTP/1.1\r\nHost: ", c.addr, "\r\n\r\n")
	got, err := c.send(ctx, deadline)
	if err == nil && got.status != http.StatusOK {
		err = fmt.Errorf("GET /healthz: answer %d", got.status)
	}
	return err
}

// order asks for one unit.
func (c *conn) order(ctx context.Context, strategy string, buyer, sku string, deadline time.Time) (answer, error) {
	const start, end = `{"lines":[{"sku":"`, `","quantity":1}]}`
	c.write("POST /v1/orders HTTP/1.1\r\nHost: ", c.addr)
	if strategy != "" {
		c.write("\r\nShop-Strategy: ", strategy)
	}
	c.write("\r\nShop-Buyer: ", buyer, "\r\nIdempotency-Key: ", buyer, "\r\nContent-Type: application/json\r\nContent-Length: ")
	c.request = strconv.AppendInt(c.request, int64(len(start)+len(sku)+len(end)), 10)
	c.write("\r\n\r\n", start, sku, end)
	return c.send(ctx, deadline)
}

func (c *conn) write(parts ...string) {
	for _, part := range parts {
		c.request = append(c.request, part...)
	}
}

// send writes the request, once, and reads the answer. After an error it is
// unknown whether the shop had the request.
func (c *conn) send(ctx context.Context, deadline time.Time) (answer, error) {
	defer func() { c.request = c.request[:0] }()
	if c.net == nil {
		dialled, err := (&net.Dialer{Deadline: deadline}).DialContext(ctx, "tcp", c.addr)
		if err != nil {
			return answer{}, err
		}
		c.net, c.read = dialled, bufio.NewReaderSize(dialled, readBuffer)
	}
	got, keep, err := c.exchange(ctx, deadline)
	if err != nil || !keep {
		c.close()
	}
	return got, err
}

func (c *conn) exchange(ctx context.Context, deadline time.Time) (got answer, keep bool, err error) {
	if err := c.net.SetDeadline(deadline); err != nil {
		return got, false, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.net.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := c.net.Write(c.request); err != nil {
		return got, false, err
	}
	resp, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return got, false, err
	}
	defer func() { _ = resp.Body.Close() }()
	c.body.Reset()
	if n, err := c.body.ReadFrom(io.LimitReader(resp.Body, maxAnswer+1)); err != nil || n > maxAnswer {
		return got, false, errors.Join(err, errIf(n > maxAnswer, errTooLong))
	}
	return answer{resp.StatusCode, c.body.Bytes()}, !resp.Close, nil
}

func errIf(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

func (c *conn) close() {
	if c.net != nil {
		_ = c.net.Close()
		c.net, c.read = nil, nil
	}
}
