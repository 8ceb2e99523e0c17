package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// door is a server and the listener on which it answers.
type door struct {
	flag     string // by which its address is chosen
	server   *http.Server
	listener net.Listener
}

func openDoor(ctx context.Context, flag, addr string, server *http.Server) (*door, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; choose another address with --%s", flag, err, flag)
	}
	return &door{flag: flag, server: server, listener: listener}, nil
}

// addr returns the host:port; empty without a door.
func (d *door) addr() string {
	if d == nil {
		return ""
	}
	return d.listener.Addr().String()
}

// serve accepts until close or a failure, which it returns.
func (d *door) serve() error {
	if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: serve: %w", d.flag, err)
	}
	return nil
}

// close accepts no more and lets the requests in flight finish. It cuts off those
// that have not when ctx ends, and returns why.
func (d *door) close(ctx context.Context) error {
	err := d.server.Shutdown(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return errors.Join(err, d.server.Close())
}

// openDoors opens that of the buyers and, if there is one, that of the operator.
func (p *parts) openDoors(ctx context.Context, s Settings, buyers http.Handler) (front, back *door, err error) {
	front, err = openDoor(ctx, "listen", s.Listen, newServer(buyers, requestTimeout(s), s))
	if err != nil || s.OperatorListen == "" {
		return front, nil, err
	}
	handler, err := p.operator(s)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("wire the operator's API: %w", err), front.listener.Close())
	}
	back, err = openDoor(ctx, "operator-listen", s.OperatorListen, newServer(handler, operatorTimeout, s))
	if err != nil {
		return nil, nil, errors.Join(err, front.listener.Close())
	}
	return front, back, nil
}
