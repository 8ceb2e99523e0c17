package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/order"
)

// Shop is a running shop.
type Shop struct {
	parts     *Parts
	buyers    *server
	operator  *server // nil for none
	serving   *errgroup.Group
	failed    <-chan struct{} // closed when a server fails, and by Shutdown
	stopJobs  func()
	jobsEnded <-chan struct{}

	draining atomic.Bool
	once     sync.Once
	stopped  error // outcome of Shutdown
}

// Start builds a shop and serves. It waits for servers until ctx or s.StartTimeout ends. Wrong settings
// are a UsageError.
func Start(ctx context.Context, s Settings, h Hooks) (*Shop, error) {
	if err := Check(s, h); err != nil {
		return nil, UsageError{Err: err}
	}
	parts, err := open(ctx, s, h)
	shop := &Shop{parts: parts}
	if err == nil {
		err = shop.serve(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, parts.close())
	}
	shop.stopJobs, shop.jobsEnded = parts.startJobs()
	redis, _ := RedisAddress(s.Redis) // empty without a Redis
	parts.log.Info("shop is open", "addr", shop.Addr(), "operator", shop.OperatorAddr(), "database", parts.Database.Name(),
		"locks", cmp.Or(redis, "process"), "strategy", s.Strategy, "traces", parts.traces != nil)
	if s.PaymentsToken.IsZero() && !s.BuyersPay {
		parts.log.Warn("no order can be paid on this instance: add --payments-token-file, see docs/payments.md")
	}
	return shop, nil
}

// serve serves the buyers' API and, if it has an address, the operator's API.
func (s *Shop) serve(ctx context.Context) (err error) {
	p := s.parts
	buyers, operator := p.handlers(s.draining.Load)
	s.buyers, err = p.newServer(ctx, "listen", p.Listen, buyers, p.requestTimeout())
	if err != nil {
		return err
	}
	if p.OperatorListen != "" {
		s.operator, err = p.newServer(ctx, "operator-listen", p.OperatorListen, operator, operatorTimeout)
		if err != nil {
			return errors.Join(err, s.buyers.listener.Close())
		}
	}
	group, until := errgroup.WithContext(context.WithoutCancel(ctx))
	s.serving, s.failed = group, until.Done()
	group.Go(s.buyers.serve)
	if s.operator != nil {
		group.Go(s.operator.serve)
	}
	return nil
}

// Addr returns the host:port of the buyers' API.
func (s *Shop) Addr() string { return s.buyers.listener.Addr().String() }

// URL returns the URL of the buyers' API, such as http://127.0.0.1:8080.
func (s *Shop) URL() string { return "http://" + s.Addr() }

// OperatorAddr returns the host:port of the operator's API, empty if there is none.
func (s *Shop) OperatorAddr() string {
	if s.operator == nil {
		return ""
	}
	return s.operator.listener.Addr().String()
}

// Done is closed when a listener fails, and by Shutdown. Call Shutdown even after a failure: it closes the open parts.
func (s *Shop) Done() <-chan struct{} { return s.failed }

// Shutdown lets readiness fail, waits for load balancers to notice, finishes the orders in flight, and closes the
// operator's API and everything else that Start opened. If ctx or Settings.Drain ends first, it aborts the rest and
// returns an error. It ends the jobs at once; a job that hangs is aborted, which is not an error. The failure of a
// listener is an error. Calling it again returns the first outcome.
func (s *Shop) Shutdown(ctx context.Context) error {
	s.once.Do(func() { s.stopped = s.shutdown(ctx) })
	return s.stopped
}

func (s *Shop) shutdown(ctx context.Context) error {
	s.parts.log.Info("shop closes")
	s.draining.Store(true)
	s.stopJobs() // another instance takes over the jobs
	_ = order.Pause(ctx, s.parts.DrainDelay)

	ctx, cancel := context.WithTimeout(ctx, s.parts.Drain)
	defer cancel()
	var cut error
	if err := s.buyers.close(ctx); err != nil {
		cut = fmt.Errorf("orders in flight were aborted: %w", err)
	}
	if s.operator != nil { // one second: a profile must not delay the end, and restocks and payments can be repeated
		second, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := s.operator.close(second); err != nil {
			s.parts.log.Warn("requests of the operator were aborted", "error", err)
		}
	}
	failure := s.serving.Wait()
	select {
	case <-s.jobsEnded:
	case <-ctx.Done(): // another instance repeats an aborted run
		s.parts.log.Warn("jobs may be aborted", "error", context.Cause(ctx))
	}
	if err := errors.Join(failure, cut, s.parts.close()); err != nil {
		return err
	}
	s.parts.log.Info("shop is closed")
	return nil
}

// requestTimeout allows for the wait for the lease and for the database.
func (s Settings) requestTimeout() time.Duration { return s.LockWait + 20*time.Second }

// operatorTimeout allows for the audit of a large shop. MySQL also limits each statement, by the DSN's readTimeout.
const operatorTimeout = 5 * time.Minute

// server is an HTTP server and its listener.
type server struct {
	http.Server
	flag     string // names the setting of its address
	listener net.Listener
	log      *slog.Logger
}

func (p *Parts) newServer(ctx context.Context, flag, addr string, handler http.Handler, timeout time.Duration) (*server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; choose another address with --%[1]s", flag, err)
	}
	const body = 15 * time.Second
	return &server{flag: flag, listener: listener, log: p.log, Server: http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       body,
		WriteTimeout:      body + timeout + 25*time.Second, // the outcome of a COMMIT that is not answered takes 20 s
		IdleTimeout:       p.IdleTimeout,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}}, nil
}

// serve accepts until close or a failure, which it logs and returns.
func (s *server) serve() error {
	err := s.Serve(s.listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	s.log.Error("shop fails", "error", err, "listener", s.flag)
	return fmt.Errorf("%s: serve: %w", s.flag, err)
}

// close accepts no more connections and waits for the requests in flight. If ctx ends first, it aborts them and fails.
func (s *server) close(ctx context.Context) error {
	if err := s.Shutdown(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}
