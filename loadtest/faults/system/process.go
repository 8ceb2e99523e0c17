package system

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lab"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// LockTTL is short, so that a fault that outlasts a lease does not take long. Patient shops have another one.
const LockTTL = 600 * time.Millisecond

// PayExtension is how much longer an order holds its units once its hold is extended: the least that a shop takes.
const PayExtension = time.Second

// Shop is an instance of the shop, in a process of its own, which is nil after Stop. While it is killed or paused, clients still
// try to reach it.
type Shop struct {
	SQL   []*testserver.Link // to each database server; none to a SQLite file
	Redis *testserver.Link   // nil for Sentinels and a Cluster
	Clock time.Duration      // how far a process that is started is ahead, if it was built to read ClockVariable

	name     string
	program  shops.Program
	strategy string // by which it sells
	patient  bool
	env      []string
	at       atomic.Pointer[shops.Process] // the process, while clients may use it
	*shops.Process
}

// ClockVariable is the environment variable with Clock, in seconds.
const ClockVariable = "FAULTS_CLOCK"

// Client returns a client of the shop; nil while clients are to avoid it.
func (s *Shop) Client(conns *http.Client) *shopclient.Client {
	if at := s.at.Load(); at != nil {
		return at.Client(conns)
	}
	return nil
}

// Start starts the process, and returns when it serves. Orders expire within a history, and a load balancer has time to see
// that an instance is about to end.
func (s *Shop) Start(ctx context.Context) (err error) {
	env := append(slices.Clone(s.env), fmt.Sprintf("%s=%.0f", ClockVariable, s.Clock.Seconds()))
	flags := []string{"--strategy=" + s.strategy, "--log-level=error", "--reconcile-at=off", "--pay-within=1s", "--pay-extension=" + PayExtension.String(), "--rate-limit=100000"}
	if s.patient {
		flags = append(flags, "--drain-delay=2s")
	} else {
		flags = append(flags, "--drain-delay=300ms", "--drain=5s", "--lock-wait=4s", "--lock-ttl="+LockTTL.String())
	}
	s.Process, err = s.program.Start(ctx, Instances, env, flags...)
	if err == nil {
		s.at.Store(s.Process)
	}
	return err
}

// Stop ends the process as an operator does. Clients avoid it as soon as it is not ready any more.
func (s *Shop) Stop(ctx context.Context) error {
	if s.Process == nil {
		return nil
	}
	ended := make(chan error, 1)
	go func(p *shops.Process) { ended <- p.Stop() }(s.Process)
	conns := shopclient.NewConnections(1, time.Second)
	defer conns.CloseIdleConnections()
	for c := s.Client(conns); c != nil && c.Ready(ctx) == nil; {
		time.Sleep(5 * time.Millisecond)
	}
	s.at.Store(nil)
	s.Process = nil
	return <-ended
}

// Server is a server behind the shops. It can be killed and started again.
type Server struct {
	*testserver.Server // nil for Redis' protocol in this process
	stop               func() error
	addr               atomic.Value // a string
}

func newServer(container *testserver.Server) *Server {
	s := &Server{Server: container}
	s.addr.Store(container.Addr())
	return s
}

// Addr is where the server is, and may be another one after Start.
func (s *Server) Addr() string { return s.addr.Load().(string) }

// Kill ends the server at once.
func (s *Server) Kill(ctx context.Context) error {
	if s.Server == nil {
		return s.stop()
	}
	return s.Do(ctx, testserver.Kill)
}

// Start starts a killed server again, and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	if s.Server == nil {
		addrs, stop, err := lab.StartEmbedded(1)
		if err == nil {
			s.stop = stop
			s.addr.Store(addrs[0])
		}
		return err
	}
	err := s.Do(ctx, testserver.Restart)
	s.addr.Store(s.Server.Addr())
	return err
}

// Redis sends a command to a Redis.
func (s *Server) Redis(ctx context.Context, command ...any) error {
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer func() { _ = client.Close() }()
	return client.Do(ctx, command...).Err()
}
