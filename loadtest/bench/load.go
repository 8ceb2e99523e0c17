package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	patience   = 2 * time.Minute       // for one answer: more than a shop's own limit
	dialling   = 64                    // connections that are opened at a time: a listener's queue is bounded
	afterError = 10 * time.Millisecond // keeps a buyer from spinning where a shop fails at once
	maxAnswer  = 64 << 10
)

// load has buyers order from shops as fast as they are answered. It is closed: each
// buyer has one connection, which is kept, and sends its next order as soon as it
// has the answer to the one before, with a name and an idempotency key that were
// never used.
//
// The buyers share the machine with the shops, so they are cheap: one goroutine that
// writes the request itself and reads the answer with net/http's parser. A Transport
// would add two goroutines for each connection.
type load struct {
	shops    []string // host:port of each; the buyers are dealt out to them
	strategy string   // that the shops are asked for; empty for none
	buyers   int      // at least 1
	sku      string   // new, as it makes the names of buyers and keys
}

// round is what came of a load. Durations are in milliseconds, processor time is a
// part of the machine's.
type round struct {
	Orders     int64 // in all, those of the warm-up and after the end included
	Refusals   int64
	Errors     int64 // orders with another answer, or none
	Unknown    int64 // of these, those that the shop may have placed all the same
	FirstError string

	OrdersPerSecond   float64
	RefusalsPerSecond float64
	P50               float64 // from an order's sending to its answer; errors included
	P99               float64
	Longest           float64

	Client     float64
	Shops      float64
	BuyerBytes int64  // grow: memory that each buyer took at the peak
	Wrong      string // with the books
}

func (r round) perSecond() float64 { return r.OrdersPerSecond + r.RefusalsPerSecond }

// loop lets the buyers buy until each had an answer, for warm at least, and then for
// length, which is what counts: rates are of the answers in that time, latencies of
// the orders that were sent since it began. Without the first part, connections of the
// shop's own would be dialled, and a strategy with a long queue had not shown its pace.
func (l load) loop(ctx context.Context, warm, length time.Duration) (round, error) {
	buyers, err := l.connect(ctx)
	defer disconnect(buyers)
	if err != nil {
		return round{}, err
	}
	var first, all sync.WaitGroup
	var over atomic.Bool
	first.Add(len(buyers))
	began := time.Now()
	for _, b := range buyers {
		all.Go(func() {
			b.buy(ctx, began)
			first.Done()
			for !over.Load() && ctx.Err() == nil {
				b.buy(ctx, began)
			}
		})
	}
	first.Wait()
	pause(ctx, warm-time.Since(began))
	from := time.Since(began)
	pause(ctx, length)
	to := time.Since(began)
	over.Store(true)
	all.Wait()
	return sum(buyers, from, to), ctx.Err()
}

// once lets each buyer send one order, all at the same moment. Rates are over the
// time until the last answer, and latencies from that moment on.
func (l load) once(ctx context.Context) (round, error) {
	buyers, err := l.connect(ctx)
	defer disconnect(buyers)
	if err != nil {
		return round{}, err
	}
	var all sync.WaitGroup
	var began time.Time // set before start is closed
	start := make(chan struct{})
	for _, b := range buyers {
		all.Go(func() {
			<-start
			b.buy(ctx, began)
		})
	}
	began = time.Now()
	close(start)
	all.Wait()
	return sum(buyers, 0, time.Since(began)), ctx.Err()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// connect returns the buyers, each with a connection that stands.
func (l load) connect(ctx context.Context) ([]*buyer, error) {
	buyers := make([]*buyer, l.buyers)
	for i := range buyers {
		buyers[i] = &buyer{load: l, number: i, conn: conn{addr: l.shops[i%len(l.shops)]}}
	}
	var group errgroup.Group
	group.SetLimit(dialling)
	for _, b := range buyers {
		group.Go(func() error { return b.conn.open(ctx) })
	}
	if err := group.Wait(); err != nil {
		return buyers, fmt.Errorf("connect %d buyers: %w", l.buyers, err)
	}
	return buyers, nil
}

func disconnect(buyers []*buyer) {
	for _, b := range buyers {
		b.conn.close()
	}
}

// sum counts the answers, and for rates and latencies those between from and to.
func sum(buyers []*buyer, from, to time.Duration) (r round) {
	took := []time.Duration{0} // what stays where nothing was sent
	for _, b := range buyers {
		r.Unknown += b.unknown
		if r.FirstError == "" && b.first != nil {
			r.FirstError = b.first.Error()
		}
		for _, a := range b.answers {
			rate := 0.0
			if done := a.sent + a.took; done >= from && done < to {
				rate = 1 / (to - from).Seconds()
			}
			switch a.status {
			case http.StatusCreated:
				r.Orders++
				r.OrdersPerSecond += rate
			case http.StatusConflict:
				r.Refusals++
				r.RefusalsPerSecond += rate
			default:
				r.Errors++
			}
			if a.sent >= from {
				took = append(took, a.took)
			}
		}
	}
	slices.Sort(took)
	last := len(took) - 1
	r.P50, r.P99, r.Longest = ms(took[(last+1)/2]), ms(took[(last*99+99)/100]), ms(took[last])
	return r
}

// buyer is one goroutine's work and what came of it.
type buyer struct {
	load    load
	number  int
	conn    conn
	answers []answer
	unknown int64
	first   error
}

type answer struct {
	sent, took time.Duration // sent since the beginning
	status     int           // 201, 409 where it is sold out, or 0 for an error
}

// buy sends one order. One that fails because ctx ended does not count.
func (b *buyer) buy(ctx context.Context, began time.Time) {
	a := answer{sent: time.Since(began)}
	name := fmt.Sprintf("%s-%d-%d", b.load.sku, b.number, len(b.answers))
	status, body, err := b.conn.order(ctx, b.load.strategy, name, b.load.sku)
	a.took = time.Since(began) - a.sent
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case status == http.StatusCreated, status == http.StatusConflict && bytes.Contains(body, []byte("/problems/sold-out")):
		a.status = status
	default:
		if err != nil || status >= http.StatusInternalServerError {
			b.unknown++
		}
		if err == nil {
			err = fmt.Errorf("answer %d: %.200s", status, body)
		}
		b.first = cmp.Or(b.first, err)
		time.Sleep(afterError)
	}
	b.answers = append(b.answers, a)
}

// conn is a connection to a shop that is dialled again when it was lost. It is for
// one goroutine.
type conn struct {
	addr    string
	net     net.Conn // nil: none yet, or lost
	read    *bufio.Reader
	request []byte
	body    bytes.Buffer
}

// open makes sure that a connection stands, by a request that costs the shop next to
// nothing: one that stays silent would be closed.
func (c *conn) open(ctx context.Context) error {
	c.request = fmt.Appendf(c.request[:0], "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", c.addr)
	status, _, err := c.send(ctx)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET /healthz: answer %d", status)
	}
	return err
}

// order asks for one unit; name is the buyer's, and the key. The body is valid until
// the next request. status is 0 if there was no answer: then it is unknown whether the
// shop had the request.
func (c *conn) order(ctx context.Context, strategy, name, sku string) (status int, body []byte, err error) {
	const start, end = `{"lines":[{"sku":"`, `","quantity":1}]}`
	length := strconv.Itoa(len(start) + len(sku) + len(end))
	c.request = c.request[:0]
	for _, part := range [...]string{
		"POST /v1/orders HTTP/1.1\r\nHost: ", c.addr, "\r\nShop-Strategy: ", strategy, "\r\nShop-Buyer: ", name, "\r\nIdempotency-Key: ", name,
		"\r\nContent-Type: application/json\r\nContent-Length: ", length, "\r\n\r\n", start, sku, end,
	} {
		c.request = append(c.request, part...)
	}
	return c.send(ctx)
}

// send writes the request, once, and reads the answer.
func (c *conn) send(ctx context.Context) (status int, body []byte, err error) {
	deadline := time.Now().Add(patience)
	if c.net == nil {
		dialled, err := (&net.Dialer{Deadline: deadline}).DialContext(ctx, "tcp", c.addr)
		if err != nil {
			return 0, nil, err
		}
		c.net, c.read = dialled, bufio.NewReaderSize(dialled, 2<<10)
	}
	standing := c.net
	if err := standing.SetDeadline(deadline); err != nil {
		return 0, nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = standing.SetDeadline(time.Unix(1, 0)) })()
	status, keep, err := c.exchange()
	if err != nil || !keep {
		c.close()
	}
	return status, c.body.Bytes(), err
}

func (c *conn) exchange() (status int, keep bool, err error) {
	if _, err := c.net.Write(c.request); err != nil {
		return 0, false, err
	}
	resp, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = resp.Body.Close() }()
	c.body.Reset()
	if n, err := c.body.ReadFrom(io.LimitReader(resp.Body, maxAnswer+1)); err != nil || n > maxAnswer {
		return 0, false, cmp.Or(err, errors.New("the answer is too long"))
	}
	return resp.StatusCode, !resp.Close, nil
}

func (c *conn) close() {
	if c.net != nil {
		_ = c.net.Close()
		c.net, c.read = nil, nil
	}
}
