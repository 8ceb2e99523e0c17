package testserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	dockernet "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"
)

const (
	startLimit = 5 * time.Minute // an official image sets up its data directory first
	faultLimit = 30 * time.Second
)

// kind is one sort of server: which image, how it is started, how it is asked whether it is ready.
type kind struct {
	name     string
	variable string // environment variable that names another image
	image    string
	port     int // in the container; with several processes, each listens on the port that the test reaches it at
	env      map[string]string
	command  []string          // several processes get their ports as arguments
	safe     []string          // the command of a durable one, nil for the image's own
	memory   string            // directory that is kept in memory, "" for none
	files    map[string][]byte // put there before the server starts, by path

	processes int // 0 for one
	network   string
	alias     string // the server's name on the network

	ready func(ctx context.Context, addr string) error // nil if the server at the address answers
}

func (k kind) imageName() string { return cmp.Or(os.Getenv(k.variable), k.image) }

// durable is the kind with its data on disk, where each commit is flushed.
func (k kind) durable() kind {
	k.command, k.memory = k.safe, ""
	return k
}

// Server is one running container.
type Server struct {
	kind      kind
	container *testcontainers.DockerContainer
	ports     []int // on this machine, one for each process; kept over a restart
	addr      string
}

// String names the server.
func (s *Server) String() string {
	return fmt.Sprintf("%s at %s, image %s", s.kind.name, s.addr, s.kind.imageName())
}

// Addr is the server's host:port, as the test reaches it.
func (s *Server) Addr() string { return s.addr }

// Close removes the container.
func (s *Server) Close() error {
	return testcontainers.TerminateContainer(s.container, testcontainers.StopTimeout(0))
}

// OpenRedis starts a Redis for a program that is no test. The caller closes it; where the process is killed before, the
// reaper of testcontainers does.
func OpenRedis(ctx context.Context) (*Server, error) { return open(ctx, redisKind()) }

// OpenMySQL is OpenRedis of a MySQL, whose commits are on disk when they return.
func OpenMySQL(ctx context.Context) (*Server, error) { return open(ctx, mysqlKind().durable()) }

// OpenMariaDB is OpenMySQL of a MariaDB.
func OpenMariaDB(ctx context.Context) (*Server, error) { return open(ctx, mariadbKind().durable()) }

// OpenZooKeeper is OpenRedis of a ZooKeeper.
func OpenZooKeeper(ctx context.Context) (*Server, error) { return open(ctx, zookeeperKind().durable()) }

func open(ctx context.Context, k kind) (*Server, error) {
	if err := findImage(ctx, k); err != nil {
		return nil, err
	}
	s, err := start(ctx, k)
	if err != nil {
		return nil, err
	}
	s.addr = s.direct(ctx)
	return s, nil
}

// direct returns the container's own address where that can be reached, as on a Linux where Docker runs: it spares each
// byte the way through Docker's proxy. A restart may change it.
func (s *Server) direct(ctx context.Context) string {
	ip, err := s.container.ContainerIP(ctx)
	if err != nil || ip == "" {
		return s.addr
	}
	direct := net.JoinHostPort(ip, strconv.Itoa(s.kind.port))
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", direct)
	if err != nil {
		return s.addr
	}
	_ = conn.Close()
	return direct
}

// start runs a container and returns when the server answers.
func start(ctx context.Context, k kind) (*Server, error) {
	for try := 1; ; try++ {
		s := &Server{kind: k}
		err := s.run(ctx)
		if err == nil {
			return s, nil
		}
		// Another process may have taken a port that was free. A server that says so of a port inside writes a capital
		// A.
		taken := strings.Contains(err.Error(), "already allocated") || strings.Contains(err.Error(), "address already in use")
		if try == 3 || !taken {
			return nil, fmt.Errorf("start %s from %s: %w; %s names another image", k.name, k.imageName(), err, k.variable)
		}
	}
}

func (s *Server) run(ctx context.Context) (err error) {
	// Not bound by ctx: a start that is cut off may leave a container that the client does not know.
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
	defer cancel()
	if s.ports, err = freePorts(max(1, s.kind.processes)); err != nil {
		return err
	}
	s.container, err = testcontainers.Run(starting, s.kind.imageName(), s.options()...)
	if err = cmp.Or(err, ctx.Err()); err == nil {
		return nil
	}
	if s.container != nil {
		if logs, failed := s.container.Logs(context.WithoutCancel(ctx)); failed == nil {
			text, _ := io.ReadAll(logs)
			err = fmt.Errorf("%w; its log:\n%s", err, text)
		}
	}
	return errors.Join(err, s.Close())
}

// freePorts returns TCP ports that nothing listens on. They are below 32768, where Linux begins to take the ports of
// outgoing connections and Docker those that it chooses: neither takes one before the server binds it, or while what
// listened there is killed. They are above 12000, for a Redis Cluster's buses below.
func freePorts(n int) (ports []int, err error) {
	for range 100 * n { // most are free
		port := 12000 + rand.IntN(20000)
		listener, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		defer func() { _ = listener.Close() }()
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("found %d of %d free ports", len(ports), n)
}

// options returns how the container is run.
func (s *Server) options() []testcontainers.ContainerCustomizer {
	k, bindings, command := s.kind, dockernet.PortMap{}, s.kind.command
	exposed := make([]string, len(s.ports))
	for i, port := range s.ports {
		inside := k.port
		if k.processes > 0 {
			inside = port
			command = append(slices.Clip(command), strconv.Itoa(port))
		}
		exposed[i] = strconv.Itoa(inside) + "/tcp"
		bindings[dockernet.MustParsePort(exposed[i])] = []dockernet.PortBinding{{HostPort: strconv.Itoa(port)}}
	}
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithLogger(silent),
		testcontainers.WithEnv(k.env),
		testcontainers.WithCmd(command...),
		testcontainers.WithExposedPorts(exposed...),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) { host.PortBindings = bindings }),
		testcontainers.WithWaitStrategyAndDeadline(startLimit, wait.ForNop(s.awaitReady)), // also after a restart
	}
	if k.memory != "" {
		options = append(options, testcontainers.WithTmpfs(map[string]string{k.memory: "rw"}))
	}
	if k.network != "" {
		options = append(options, network.WithNetworkName([]string{k.alias}, k.network))
	}
	for path, text := range k.files {
		options = append(options, testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader: bytes.NewReader(text), ContainerFilePath: path, FileMode: 0o644,
		}))
	}
	return options
}

// awaitReady polls until each process answers.
func (s *Server) awaitReady(ctx context.Context, target wait.StrategyTarget) error {
	host, err := target.Host(ctx)
	if err != nil {
		return err
	}
	s.addr = net.JoinHostPort(host, strconv.Itoa(s.ports[0]))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return poll(ctx, func(ctx context.Context) error {
		if state, err := target.State(ctx); err == nil && !state.Running && state.Status != "created" {
			cancel()
			return fmt.Errorf("the container ended with code %d", state.ExitCode)
		}
		for _, port := range s.ports {
			if err := s.kind.ready(ctx, net.JoinHostPort(host, strconv.Itoa(port))); err != nil {
				return fmt.Errorf("not ready: %w", err)
			}
		}
		return nil
	})
}

// Pause freezes the server: connections stay open and nobody answers.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.fault(t, func(ctx context.Context, docker client.APIClient, id string) (any, error) {
		return docker.ContainerPause(ctx, id, client.ContainerPauseOptions{})
	})
}

// Unpause lets a paused server go on.
func (s *Server) Unpause(t testing.TB) {
	t.Helper()
	s.fault(t, func(ctx context.Context, docker client.APIClient, id string) (any, error) {
		return docker.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
	})
}

// Kill ends the server as a crash would, by SIGKILL.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.fault(t, func(ctx context.Context, docker client.APIClient, id string) (any, error) {
		return docker.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
	})
}

func (s *Server) fault(t testing.TB, f func(context.Context, client.APIClient, string) (any, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), faultLimit)
	defer cancel()
	docker, err := findDocker(ctx)
	if err != nil {
		t.Fatalf("testserver: %v", err)
	}
	defer func() { _ = docker.Close() }()
	if _, err := f(ctx, docker, s.container.GetContainerID()); err != nil {
		t.Fatalf("testserver: %s: %v", s, err)
	}
}

// Restart starts a killed server again, at the same address, and returns when it answers.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := s.container.Start(ctx); err != nil {
		t.Fatalf("testserver: restart %s: %v", s, err)
	}
}
