package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Shop is a running shop.
type Shop struct {
	front        *door // the buyers'
	back         *door // the operator's; nil for none
	parts        *parts
	log          *slog.Logger
	drainDelay   time.Duration
	drainTimeout time.Duration

	jobs jobs

	draining atomic.Bool
	once     sync.Once
	stopped  error // outcome of Shutdown
	serving  sync.WaitGroup
	done     chan struct{} // closed when one of the doors has ended
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
	service, err := parts.service(s)
	if err != nil {
		return nil, errors.Join(err, parts.close())
	}
	handler, err := parts.handler(s, service, shop.draining.Load)
	if err != nil {
		return nil, errors.Join(err, parts.close())
	}
	if shop.front, shop.back, err = parts.openDoors(ctx, s, handler); err != nil {
		return nil, errors.Join(err, parts.close())
	}
	go shop.serve()
	shop.jobs.start(parts.expiry(s, service))
	if s.ReconcileAt != off {
		shop.jobs.start(parts.reconciliation(s))
	}
	shop.jobs.start(parts.keys(s))
	shop.log.Info("shop is open", "addr", shop.Addr(), "operator", shop.OperatorAddr(), "database", parts.database.Name(), "locks", s.locks(), "lab", s.Lab, "traces", parts.traces != nil)
	return shop, nil
}

// serve accepts until Shutdown or a failure of either door.
func (s *Shop) serve() {
	defer close(s.done)
	ended := make(chan error, 2)
	s.serving.Go(func() { ended <- s.front.serve() })
	if s.back != nil {
		s.serving.Go(func() { ended <- s.back.serve() })
	}
	if s.failure = <-ended; s.failure != nil {
		s.log.Error("shop fails", "error", s.failure)
	}
}

// Addr returns the host:port that it serves on.
func (s *Shop) Addr() string { return s.front.addr() }

// OperatorAddr returns the host:port of the operator's API; empty without one.
func (s *Shop) OperatorAddr() string { return s.back.addr() }

// URL returns http:// and the address.
func (s *Shop) URL() string { return "http://" + s.Addr() }

// Done is closed when the shop has stopped accepting orders, by Shutdown or by a
// failure of either listener. Call Shutdown after a failure, too: it closes what is open.
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
