package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
)

// handler is the buyers' listener of a teaching shop. Beside what buyers may do it has
//
//	GET  /v1/strategies                the ways to sell that the header Shop-Strategy may name, the default first
//	GET  /v1/recordings/{name}         a Recording, once its version is higher than ?seen=N, or after 10 s as it is
//	GET  /v1/recordings/{name}/lock    the LockState of the lock that the recorded request has asked for last
//	POST /v1/recordings/{name}/{move}  make a Move with the request; the Recording
//
// and, without a token, what the operator does with stock: GET /v1/audit, POST /v1/skus, PATCH /v1/skus/{sku}, and GET
// and POST /v1/skus/{sku}/movements. Guard protects all of them.
func (l *teaching) handler(buyers, operator http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", buyers)
	mux.HandleFunc("POST /v1/orders", func(w http.ResponseWriter, r *http.Request) {
		buyers.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), choiceKey{}, &choice{header: r.Header, answer: w.Header()})))
	})
	asOperator := func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+l.settings.OperatorToken.Reveal())
		operator.ServeHTTP(w, r)
	}
	for _, pattern := range []string{
		"GET /v1/audit", "POST /v1/skus", "PATCH /v1/skus/{sku}", "GET /v1/skus/{sku}/movements", "POST /v1/skus/{sku}/movements",
	} {
		mux.HandleFunc(pattern, asOperator)
	}
	mux.HandleFunc("GET /v1/strategies", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"strategies": l.offers, "database": l.database, "redis": l.redis}, nil)
	})
	recordings := func(pattern string, do func(ctx context.Context, r *http.Request, name string) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), lookBound)
			defer cancel()
			body, err := do(ctx, r, r.PathValue("name"))
			answer(w, body, err)
		})
	}
	recordings("GET /v1/recordings/{name}", func(ctx context.Context, r *http.Request, name string) (any, error) {
		seen, err := strconv.ParseUint(cmp.Or(r.URL.Query().Get("seen"), "0"), 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%w: seen: want the version of a recording, 0 or more", ErrInvalid)
		}
		return l.recorder.Look(ctx, name, int(seen))
	})
	recordings("GET /v1/recordings/{name}/lock", func(ctx context.Context, _ *http.Request, name string) (any, error) {
		return l.recorder.Holder(ctx, name)
	})
	recordings("POST /v1/recordings/{name}/{move}", func(ctx context.Context, r *http.Request, name string) (any, error) {
		if err := l.recorder.Do(ctx, Move(r.PathValue("move")), name); err != nil {
			return nil, err
		}
		return l.recorder.Look(ctx, name, 0)
	})
	name, _, _ := net.SplitHostPort(l.settings.Listen)
	return Guard(name, mux)
}

// Guard protects a server that asks for no password from the pages that its user opens in a browser. A request that
// changes something must be of the same origin. The Host of each request must be an address, localhost, or name, which
// the server listens on: the owner of any other name can make the name lead here (DNS rebinding).
func Guard(name string, next http.Handler) http.Handler {
	sameOrigin := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		if _, err := netip.ParseAddr(host); err != nil && !strings.EqualFold(host, "localhost") && !strings.EqualFold(host, name) {
			http.Error(w, "the lab does not listen on this host: use its address", http.StatusMisdirectedRequest)
			return
		}
		sameOrigin.ServeHTTP(w, r)
	})
}

// answer writes JSON, or a problem of RFC 9457.
func answer(w http.ResponseWriter, body any, err error) {
	status, contentType, kind := http.StatusOK, "application/json; charset=utf-8", "lock-no-answer"
	switch {
	case errors.Is(err, ErrInvalid):
		status, kind = http.StatusBadRequest, "malformed"
	case errors.Is(err, ErrNotFound):
		status, kind = http.StatusNotFound, "not-found"
	case err != nil:
		status = http.StatusServiceUnavailable
	}
	if err != nil {
		contentType = "application/problem+json"
		body = map[string]any{
			"type": "/problems/" + kind, "title": http.StatusText(status), "status": status, "detail": err.Error(),
			"retry_safe": status == http.StatusServiceUnavailable,
		}
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // it fails only if the client is gone
}

// identify believes the header Shop-Buyer.
func identify(r *http.Request) (buyer string, err error) {
	return cmp.Or(r.Header.Get("Shop-Buyer"), "guest"), nil
}

const (
	maxThink  = time.Second      // of an order
	lookBound = 10 * time.Second // for a change of a recording, or for the lock's store
)

// choice is how a request wants its order to be sold, by its headers.
type choice struct {
	header, answer http.Header
	strategy       order.Strategy
	think          time.Duration
	trace          *Trace
}

type choiceKey struct{}

// choose reads the headers by which a request chooses how its order is sold:
//
//	Shop-Strategy: none    how, by a strategy that is available
//	Shop-Think: 2ms        the pause between reading stock and writing it, at most maxThink
//	Shop-Recording: a      record the request under this name, and stop it before each step that another can notice
//
// The error is an httpapi.ErrMalformed.
func (l *teaching) choose(by *choice) (err error) {
	found, err := Find(l.offers, cmp.Or(by.header.Get("Shop-Strategy"), l.offers[0].Name))
	if err != nil {
		return fmt.Errorf("%w: Shop-Strategy: %w", httpapi.ErrMalformed, err)
	}
	by.strategy, by.think = found.Strategy, l.settings.Think
	think := by.header.Get("Shop-Think")
	if think != "" {
		by.think, err = time.ParseDuration(think)
	}
	if err != nil || by.think < 0 || by.think > maxThink {
		return fmt.Errorf("%w: Shop-Think %.40q: want a duration such as 2ms, at most %v", httpapi.ErrMalformed, think, maxThink)
	}
	return nil
}

type service = httpapi.Orders // a field called Orders would hide the method

// chosenOrders lets requests choose how an order is sold, and traces the requests that place one.
type chosenOrders struct {
	service
	lab *teaching
}

// Place implements httpapi.Orders. The answer to a new order, or to one that is sold out, has the steps in the header
// Shop-Trace.
func (o chosenOrders) Place(ctx context.Context, r order.Request) (placed order.Order, replayed bool, err error) {
	by, _ := ctx.Value(choiceKey{}).(*choice)
	if err := o.lab.choose(by); err != nil {
		return placed, false, err
	}
	skus := order.Map(r.Lines, func(line order.Line) string { return line.SKU })
	ctx, by.trace, err = o.lab.recorder.Begin(ctx, by.header.Get("Shop-Recording"), skus)
	if err != nil {
		return placed, false, fmt.Errorf("%w: %w", httpapi.ErrMalformed, err)
	}
	placed, replayed, err = o.service.Place(ctx, r)
	by.trace.End()
	if !replayed && (err == nil || errors.Is(err, order.ErrSoldOut) || errors.Is(err, order.ErrBusy)) {
		by.answer.Set("Shop-Trace", by.trace.Header())
	}
	return placed, replayed, err
}

// chosen is the strategy of the shop: it sells each order as its request has chosen, and traces that.
type chosen struct{}

func (chosen) Sell(ctx context.Context, d *order.Draft) error {
	by, _ := ctx.Value(choiceKey{}).(*choice)
	d.Think = by.think
	return by.strategy.Sell(by.trace.In(ctx), d)
}
