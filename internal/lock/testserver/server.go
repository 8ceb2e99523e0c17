package testserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	dockernet "github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"
)

const (
	startLimit = 5 * time.Minute // an official image sets up its data directory first
	faultLimit = 30 * time.Second

	startTries   = 3 // where somebody takes a port that was free
	restartTries = 5 // a second apart, as the port stays the same
)

// Server is one running container.
type Server struct {
	kind      kind
	container *testcontainers.DockerContainer
	addr      string
	version   string
	ports     []int // of a server that is several processes
}

// String names the server and its real version.
func (s *Server) String() string {
	return fmt.Sprintf("%s %s at %s, image %s", s.kind.name, s.version, s.addr, s.kind.imageName())
}

// Addr is the server's host:port, as the test reaches it.
func (s *Server) Addr() string { return s.addr }

type startOptions struct {
	durable   bool // data on disk, flushed by each commit
	fixedPort bool // Docker gives a restarted container another port, unless it was asked for one
	processes int  // how many, each at a port published as itself: servers tell clients each other's

	network string            // on which the servers of a test find each other
	alias   string            // the server's name on it
	files   map[string][]byte // put there before the server starts, by path
}

// start runs a container and returns when the server answers.
func start(ctx context.Context, k kind, o startOptions) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()

	for try := 1; ; try++ {
		s := &Server{kind: k}
		options, err := s.options(ctx, o) // with other ports each time
		if err != nil {
			return nil, err
		}
		running, err := testcontainers.Run(ctx, k.imageName(), options...)
		if err == nil {
			s.container = running
			return s, nil
		}
		// Run returns the container with the error where one was made. ctx may have ended: that can be the error.
		cleanup := testcontainers.TerminateContainer(running)
		if cleanup != nil || try == startTries || !portTaken(err) {
			return nil, fmt.Errorf("start %s from %s: %w", k.name, k.imageName(), joinCleanup(err, cleanup))
		}
	}
}

// options returns how the container is run, and finds the ports for it.
func (s *Server) options(ctx context.Context, o startOptions) ([]testcontainers.ContainerCustomizer, error) {
	if o.processes > 0 {
		free, err := freePorts(ctx, o.processes)
		if err != nil {
			return nil, err
		}
		s.ports, s.kind = free, s.kind.on(free)
	}
	k := s.kind
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithExposedPorts(k.port),
		testcontainers.WithEnv(k.env),
		testcontainers.WithLogger(silent{}),
		testcontainers.WithWaitStrategyAndDeadline(startLimit, wait.ForNop(s.awaitReady)),
	}
	if !o.durable {
		options = append(options,
			testcontainers.WithCmd(k.fast...),
			testcontainers.WithTmpfs(map[string]string{k.data: "rw"}))
	}
	if o.fixedPort {
		free, err := freePorts(ctx, 1)
		if err != nil {
			return nil, err
		}
		options = append(options, testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			host.PortBindings = dockernet.PortMap{dockernet.MustParsePort(k.port): {{HostPort: strconv.Itoa(free[0])}}}
		}))
	}
	if len(s.ports) > 0 {
		options = append(options, publish(s.ports))
	}
	if o.network != "" {
		options = append(options, network.WithNetworkName([]string{o.alias}, o.network))
	}
	for path, text := range o.files {
		options = append(options, testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader: bytes.NewReader(text), ContainerFilePath: path, FileMode: 0o644,
		}))
	}
	return options, nil
}

// awaitReady polls until the server tells its version. The strategies that come with testcontainers look for log lines
// of particular images, or take an open port for a server.
func (s *Server) awaitReady(ctx context.Context, target wait.StrategyTarget) error {
	host, err := target.Host(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		state, err := target.State(ctx)
		if err == nil && !state.Running && state.Status != "created" {
			return fmt.Errorf("the container ended with code %d: %s", state.ExitCode, lastLog(ctx, target))
		}
		if port, portErr := target.MappedPort(ctx, s.kind.port); portErr != nil {
			err = portErr
		} else {
			addr := net.JoinHostPort(host, port.Port())
			var version string
			if version, err = s.kind.version(ctx, addr); err == nil {
				s.addr, s.version = addr, version
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w; its log ends: %s", err, lastLog(context.WithoutCancel(ctx), target))
		case <-tick.C:
		}
	}
}

// StartRedis starts a Redis for this test alone, for faults. It keeps its data in memory: a killed one starts empty.
func StartRedis(t testing.TB) *Server {
	t.Helper()
	return pool.own(t, redisKind(), startOptions{fixedPort: true})
}

// StartMySQL starts a MySQL for this test alone, for faults. It is durable: a killed one recovers each commit.
func StartMySQL(t testing.TB) *Server {
	t.Helper()
	return pool.own(t, mysqlKind(), startOptions{fixedPort: true, durable: true})
}

// StartMariaDB starts a MariaDB for this test alone, as StartMySQL does.
func StartMariaDB(t testing.TB) *Server {
	t.Helper()
	return pool.own(t, mariadbKind(), startOptions{fixedPort: true, durable: true})
}

// terminate kills and removes the container, paused or not; nothing in it is worth a shutdown.
func (s *Server) terminate(ctx context.Context) error {
	return s.container.Terminate(ctx, testcontainers.StopTimeout(0))
}

func joinCleanup(err, cleanup error) error {
	if cleanup == nil {
		return err
	}
	return fmt.Errorf("%w (and its container is left: %w)", err, cleanup)
}

// lastLog returns the end of the container's log, for an error message.
func lastLog(ctx context.Context, target wait.StrategyTarget) string {
	logs, err := target.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = logs.Close() }()
	text, err := io.ReadAll(logs)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
