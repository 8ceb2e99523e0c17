package system

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lab"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/child"
	"example.com/shop/loadtest/shopclient"
)

// LockTTL is short, so that a fault that outlasts a lease does not take long. Patient shops have another one.
const LockTTL = 600 * time.Millisecond

// PayExtension is how much longer an order holds its units once its hold is extended: the least that a shop takes.
const PayExtension = time.Second

// Shop is an instance of the shop, in a process of its own.
type Shop struct {
	SQL   []*testserver.Link // to each database server; none to a SQLite file
	Redis *testserver.Link   // nil for Sentinels and a Cluster
	Clock time.Duration      // how far a process that is started is ahead, if it was built to read ClockVariable

	name     string
	program  Program
	strategy string // by which it sells
	patient  bool
	env      []string
	process  *child.Process
	at       atomic.Pointer[child.Process] // the process, while clients may use it
}

// Program is cmd/shop as the instances run it.
type Program struct {
	File       string
	Keys       *shopclient.Keys
	Strategies []string // the instances take turns
}

// ClockVariable is the environment variable with Clock, in seconds.
const ClockVariable = "FAULTS_CLOCK"

// Client returns a client of the shop; nil while clients are to avoid it.
func (s *Shop) Client(conns *http.Client) *shopclient.Client {
	at := s.at.Load()
	if at == nil {
		return nil
	}
	return shopclient.New("http://"+at.Addr, conns).WithKeys(s.program.Keys, "http://"+at.Operator)
}

// Start starts the process, and returns when it serves. Orders expire within a history, and a load balancer has time to see
// that an instance is about to end.
func (s *Shop) Start(ctx context.Context) (err error) {
	env := append(slices.Clone(s.env), fmt.Sprintf("%s=%.0f", ClockVariable, s.Clock.Seconds()))
	env = append(env, s.program.Keys.Environ()...)
	flags := []string{"--strategy=" + s.strategy, "--log-level=error", "--reconcile-at=off", "--pay-within=1s", "--pay-extension=" + PayExtension.String(), "--rate-limit=100000"}
	if s.patient {
		flags = append(flags, "--drain-delay=2s")
	} else {
		flags = append(flags, "--drain-delay=300ms", "--drain=5s", "--lock-wait=4s", "--lock-ttl="+LockTTL.String())
	}
	s.process, err = child.StartShop(ctx, Instances, s.program.File, env, flags...)
	if err == nil {
		s.at.Store(s.process)
	}
	return err
}

// Kill ends the process at once, as a crash does. Clients still try to reach it.
func (s *Shop) Kill() error { return s.process.Kill() }

// Pause stops the process, as a long collection of garbage or a moved virtual machine does.
func (s *Shop) Pause() error { return s.process.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Shop) Resume() error { return s.process.Signal(syscall.SIGCONT) }

// Stop ends the process as an operator does. Clients avoid it as soon as it is not ready any more.
func (s *Shop) Stop(ctx context.Context) error {
	if s.process == nil {
		return nil
	}
	_ = s.Resume() // else it would not end
	ended := make(chan error, 1)
	go func(p *child.Process) { ended <- p.Stop() }(s.process)
	conns := shopclient.NewConnections(1, time.Second)
	defer conns.CloseIdleConnections()
	for c := s.Client(conns); c != nil && c.Ready(ctx) == nil; {
		time.Sleep(5 * time.Millisecond)
	}
	s.at.Store(nil)
	s.process = nil
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
