package testserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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

	// version returns the version that a server reports; an error means that it is not ready.
	version func(ctx context.Context, addr string) (string, error)
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
	version   string
}

// String names the server and its version.
func (s *Server) String() string {
	return fmt.Sprintf("%s %s at %s, image %s", s.kind.name, s.version, s.addr, s.kind.imageName())
}

// Addr is the server's host:port, as the test reaches it.
func (s *Server) Addr() string { return s.addr }

// Close removes the container.
func (s *Server) Close() error {
	return testcontainers.TerminateContainer(s.container, testcontainers.StopTimeout(0))
}

// start runs a container and returns when the server answers.
func start(ctx context.Context, k kind) (*Server, error) {
	for try := 1; ; try++ {
		s := &Server{kind: k}
		err := s.run(ctx)
		if err == nil {
			return s, nil
		}
		if try == 3 || !portTaken(err) { // another process may have taken a port that was free
			return nil, fmt.Errorf("start %s from %s: %w; %s names another image", k.name, k.imageName(), err, k.variable)
		}
	}
}

func (s *Server) run(ctx context.Context) (err error) {
	// Not with ctx: a request to create that is cut off may leave a container that the client does not know.
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
	defer cancel()
	if s.ports, err = freePorts(max(1, s.kind.processes)); err != nil {
		return err
	}
	running, err := testcontainers.Run(creating, s.kind.imageName(), s.options(ctx)...)
	if err != nil {
		if running != nil {
			err = fmt.Errorf("%w; its log ends:\n%s", err, lastLog(running))
		}
		return errors.Join(err, testcontainers.TerminateContainer(running))
	}
	s.container = running
	return nil
}

// options returns how the container is run, and waited for until ctx ends.
func (s *Server) options(ctx context.Context) []testcontainers.ContainerCustomizer {
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
		testcontainers.WithLogger(silent{}),
		testcontainers.WithEnv(k.env),
		testcontainers.WithCmd(command...),
		testcontainers.WithExposedPorts(exposed...),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) { host.PortBindings = bindings }),
		// The strategies that come with testcontainers are for one kind of server each, and tell no version.
		testcontainers.WithWaitStrategyAndDeadline(startLimit, wait.ForNop(func(waiting context.Context, target wait.StrategyTarget) error {
			waiting, cancel := context.WithCancel(waiting)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			return s.awaitReady(waiting, target)
		})),
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

// awaitReady polls until each process reports its version.
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
			version, err := s.kind.version(ctx, net.JoinHostPort(host, strconv.Itoa(port)))
			if err != nil {
				return fmt.Errorf("not ready: %w", err)
			}
			s.version = version
		}
		return nil
	})
}

// lastLog returns the end of the container's log.
func lastLog(c testcontainers.Container) string {
	ctx, cancel := context.WithTimeout(context.Background(), faultLimit)
	defer cancel()
	logs, err := c.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = logs.Close() }()
	text, _ := io.ReadAll(logs)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
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
	err := withDocker(context.Background(), faultLimit, func(ctx context.Context, docker client.APIClient) error {
		_, err := f(ctx, docker, s.container.GetContainerID())
		return err
	})
	if err != nil {
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

// portTaken reports whether Docker did not start a container because one of its ports is in use. A server that says so of
// a port inside writes a capital A.
func portTaken(err error) bool {
	return strings.Contains(err.Error(), "already allocated") || strings.Contains(err.Error(), "address already in use")
}
