package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Shop is a running shop.
type Shop struct {
	addr         string
	server       *http.Server
	parts        *parts
	log          *slog.Logger
	drainDelay   time.Duration
	drainTimeout time.Duration

	draining atomic.Bool
	once     sync.Once
	stopped  error         // outcome of Shutdown
	done     chan struct{} // closed when Serve has returned
	failure  error         // why, if not by Shutdown; read after done
}

// Start builds a shop from its settings and serves. It waits until database
// and Redis answer or ctx or s.StartTimeout ends.
func Start(ctx context.Context, s Settings) (*Shop, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	parts, err := openParts(ctx, s)
	if err != nil {
		return nil, err
	}
	shop := &Shop{
		parts:        parts,
		log:          s.log(),
		drainDelay:   s.DrainDelay,
		drainTimeout: s.DrainTimeout,
		done:         make(chan struct{}),
	}
	handler, err := parts.handler(s, shop.draining.Load)
	if err != nil {
		return nil, errors.Join(err, parts.close())
	}
	// Last: whoever can connect is answered.
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w; choose another address with --listen", err), parts.close())
	}
	shop.addr = listener.Addr().String()
	shop.server = newServer(handler, s)
	go shop.serve(listener)
	shop.log.Info("shop is open", "addr", shop.addr, "database", parts.database.Name(), "lab", s.Lab)
	return shop, nil
}

// serve accepts until Shutdown or a failure.
func (s *Shop) serve(listener net.Listener) {
	defer close(s.done)
	if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		s.failure = fmt.Errorf("serve: %w", err)
		s.log.Error("shop fails", "error", err)
	}
}

// Addr returns the host:port that it serves on.
func (s *Shop) Addr() string { return s.addr }

// URL returns http:// and the address.
func (s *Shop) URL() string { return "http://" + s.addr }

// Done is closed when the shop has stopped accepting requests, by Shutdown or by
// a failure. Call Shutdown after a failure, too: it closes what is open.
func (s *Shop) Done() <-chan struct{} { return s.done }

// Err returns why the shop stopped serving by itself; nil before that and after
// a Shutdown.
func (s *Shop) Err() error {
	select {
	case <-s.done:
		return s.failure
	default:
		return nil
	}
}
