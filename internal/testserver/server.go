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
	"time"

	"github.com/moby/moby/api/types/container"
	dockernet "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/exec"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"
	"golang.org/x/sync/errgroup"
)

const (
	startLimit = 5 * time.Minute // an official image sets up its data directory first
	faultLimit = 30 * time.Second
)

// kind describes a kind of server: its image, how to start it, and how to ask whether it is ready.
type kind struct {
	name     string
	variable string // environment variable that names another image
	image    string
	port     int // in the container; with several processes, each listens on its port of this machine
	env      map[string]string
	command  []string          // gets the ports of several processes as arguments
	safe     []string          // the command of a durable server; nil for the image's own command
	memory   map[string]string // directories in memory, with their mount options
	files    map[string][]byte // by path, copied into the container before the server starts

	processes int // 0 for one
	network   string
	alias     string // the server's name on the network

	ready func(ctx context.Context, addr string) error // nil if the server at the address answers
}

func (k kind) imageName() string { return cmp.Or(os.Getenv(k.variable), k.image) }

// durable returns the kind with its data on disk. Each commit is flushed.
func (k kind) durable() kind {
	k.command, k.memory = k.safe, nil
	return k
}

// Server is one running container.
type Server struct {
	kind      kind
	container *testcontainers.DockerContainer
	host      string
	ports     []int // on this machine, one for each process
}

// String names the server.
func (s *Server) String() string {
	return fmt.Sprintf("%s at %s, image %s", s.kind.name, s.Addr(), s.kind.imageName())
}

// Addr returns the host:port at which the test reaches the server. A Restart keeps it.
func (s *Server) Addr() string { return net.JoinHostPort(s.host, strconv.Itoa(s.ports[0])) }

// Close removes the container.
func (s *Server) Close() error {
	return testcontainers.TerminateContainer(s.container, testcontainers.StopTimeout(0))
}

// OpenRedis starts a Redis for a program that is not a test. The program, or else testcontainers' reaper, closes it.
func OpenRedis(ctx context.Context) (*Server, error) { return redisKind().start(ctx) }

// OpenMySQL is like OpenRedis, for a MySQL whose commits are on disk when they return.
func OpenMySQL(ctx context.Context) (*Server, error) { return mysqlKind().durable().start(ctx) }

// OpenMariaDB is like OpenMySQL, for a MariaDB.
func OpenMariaDB(ctx context.Context) (*Server, error) { return mariadbKind().durable().start(ctx) }

// OpenZooKeeper is like OpenRedis, for a ZooKeeper.
func OpenZooKeeper(ctx context.Context) (*Server, error) { return zookeeperKind().durable().start(ctx) }

// start runs a container and returns when the server answers.
func (k kind) start(ctx context.Context) (*Server, error) {
	if err := findImage(ctx, k); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		s := &Server{kind: k}
		err := s.run(ctx)
		if err == nil {
			return s, nil
		}
		// Another process may have taken a free port. (For a port inside the container, servers report "Address already in
		// use", and trying again does not help.)
		taken := strings.Contains(err.Error(), "already allocated") || strings.Contains(err.Error(), "address already in use")
		if try == 3 || !taken {
			return nil, fmt.Errorf("start %s from %s: %w; %s names another image", k.name, k.imageName(), err, k.variable)
		}
	}
}

func (s *Server) run(ctx context.Context) (err error) {
	if s.ports, err = FreePorts(max(1, s.kind.processes)); err != nil {
		return err
	}
	// ctx does not end the start: an aborted start may leave a container that the client does not know.
	starting := context.WithoutCancel(ctx)
	s.container, err = testcontainers.Run(starting, s.kind.imageName(), testcontainers.CustomizeRequestOption(s.request))
	if err = cmp.Or(err, ctx.Err()); err == nil {
		s.bypassProxy(ctx)
		return nil
	}
	if s.container != nil {
		if logs, failed := s.container.Logs(starting); failed == nil {
			text, _ := io.ReadAll(logs)
			err = fmt.Errorf("%w; its log:\n%s", err, text)
		}
	}
	return errors.Join(err, s.Close())
}

// FreePorts returns free TCP ports. They are below 32768, where the range begins from which Linux takes ports for
// outgoing connections, and Docker the ports that it chooses. So neither takes a port before the server binds it, or
// while the server is killed. The ports are above 12000, because a Redis Cluster also uses the ports from 11001 on.
func FreePorts(n int) (ports []int, err error) {
	for range 100 * n { // most ports are free
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

// request says how to start the container.
func (s *Server) request(r *testcontainers.GenericContainerRequest) error {
	k, bindings := s.kind, dockernet.PortMap{}
	r.Env, r.Cmd, r.Tmpfs = k.env, slices.Clone(k.command), k.memory
	for _, port := range s.ports {
		inside := k.port
		if k.processes > 0 {
			inside = port
			r.Cmd = append(r.Cmd, strconv.Itoa(port))
		}
		exposed := strconv.Itoa(inside) + "/tcp"
		r.ExposedPorts = append(r.ExposedPorts, exposed)
		bindings[dockernet.MustParsePort(exposed)] = []dockernet.PortBinding{{HostPort: strconv.Itoa(port)}}
	}
	r.HostConfigModifier = func(host *container.HostConfig) { host.PortBindings = bindings }
	r.WaitingFor = wait.ForAll(wait.ForNop(s.awaitReady)).WithDeadline(startLimit) // also after a restart
	if k.network != "" {
		// The ports are on the network bridge.
		r.Networks, r.NetworkAliases = []string{"bridge", k.network}, map[string][]string{k.network: {k.alias}}
	}
	for path, text := range k.files {
		r.Files = append(r.Files, testcontainers.ContainerFile{Reader: bytes.NewReader(text), ContainerFilePath: path, FileMode: 0o644})
	}
	return nil
}

// awaitReady polls until each process answers.
func (s *Server) awaitReady(ctx context.Context, target wait.StrategyTarget) (err error) {
	if s.host == "" { // not after a restart
		if s.host, err = target.Host(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return Poll(ctx, func(ctx context.Context) error {
		if state, err := target.State(ctx); err == nil && !state.Running && state.Status != "created" {
			cancel()
			return fmt.Errorf("the container ended with code %d", state.ExitCode)
		}
		return s.answers(ctx, s.host)
	})
}

// bypassProxy makes Docker's bridge the host if the server answers there, as on Linux. Bytes then do
// not pass Docker's proxy.
func (s *Server) bypassProxy(ctx context.Context) {
	info, err := s.container.Inspect(ctx)
	if err != nil {
		return
	}
	if on := info.NetworkSettings.Networks["bridge"]; on != nil && s.answers(ctx, on.Gateway.String()) == nil {
		s.host = on.Gateway.String()
	}
}

// answers returns nil if each process is ready. It asks at the ports on this machine.
func (s *Server) answers(ctx context.Context, host string) error {
	for _, port := range s.ports {
		if err := s.kind.ready(ctx, net.JoinHostPort(host, strconv.Itoa(port))); err != nil {
			return fmt.Errorf("not ready: %w", err)
		}
	}
	return nil
}

// Fault is an action on a server that breaks or heals it.
type Fault string

// The faults, and the actions that end them. Isolate and Reconnect are for servers on a network of their own.
const (
	Kill      Fault = "kill"      // ends the server by SIGKILL, as a crash does
	Restart   Fault = "restart"   // starts a killed server and waits until it answers
	Pause     Fault = "pause"     // freezes the server: connections stay open, and the server does not answer
	Unpause   Fault = "unpause"   // ends Pause
	Isolate   Fault = "isolate"   // cuts the server off from the others, but not from this machine
	Reconnect Fault = "reconnect" // ends Isolate
)

// Do executes a fault, or ends one.
func (s *Server) Do(ctx context.Context, f Fault) error {
	docker, err := findDocker(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = docker.Close() }()
	id := s.container.GetContainerID()
	switch f {
	case Kill:
		_, err = docker.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
	case Restart:
		err = s.container.Start(ctx)
	case Pause:
		_, err = docker.ContainerPause(ctx, id, client.ContainerPauseOptions{})
	case Unpause:
		_, err = docker.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
	case Isolate:
		_, err = docker.NetworkDisconnect(ctx, s.kind.network, client.NetworkDisconnectOptions{Container: id, Force: true})
	case Reconnect:
		_, err = docker.NetworkConnect(ctx, s.kind.network, client.NetworkConnectOptions{
			Container: id, EndpointConfig: &dockernet.EndpointSettings{Aliases: []string{s.kind.alias}},
		})
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", f, s, err)
	}
	return nil
}

// Exec runs a shell command in the container.
func (s *Server) Exec(ctx context.Context, command string) error {
	ctx, cancel := context.WithTimeout(ctx, faultLimit)
	defer cancel()
	code, _, err := s.container.Exec(ctx, []string{"sh", "-c", command}, exec.Multiplexed())
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d", code)
	}
	if err != nil {
		return fmt.Errorf("%s in %s: %w", command, s, err)
	}
	return nil
}

// Servers are several containers.
type Servers []*Server

// OpenAll starts servers by functions such as OpenRedis, all at the same time. If one cannot be
// started, no server is left.
func OpenAll(ctx context.Context, opens ...func(context.Context) (*Server, error)) (Servers, error) {
	all := make(Servers, len(opens))
	starting, ctx := errgroup.WithContext(ctx)
	for i, open := range opens {
		starting.Go(func() (err error) {
			all[i], err = open(ctx)
			return err
		})
	}
	if err := starting.Wait(); err != nil {
		return nil, errors.Join(err, all.Close())
	}
	return all, nil
}

// Close removes the containers.
func (all Servers) Close() error {
	var closing errgroup.Group
	for _, s := range all {
		if s != nil { // the server was started
			closing.Go(s.Close)
		}
	}
	return closing.Wait()
}

// Ensemble is several servers on a network of their own, on which they reach each other by their aliases. Each server
// is a container of its own, is durable, and keeps its address over a restart.
type Ensemble struct {
	Servers
	network *testcontainers.DockerNetwork
}

// openEnsemble starts n servers at the same time, because one alone might never be ready, and connects them.
func openEnsemble(ctx context.Context, n int, member func(i int, network string) kind, connect func(*Ensemble) error) (*Ensemble, error) {
	if err := findImage(ctx, member(0, "")); err != nil {
		return nil, err
	}
	on, err := network.New(ctx, network.WithInternal()) // or published ports might also use it
	if err != nil {
		return nil, fmt.Errorf("make a network: %w", err)
	}
	e := &Ensemble{network: on}
	var opens []func(context.Context) (*Server, error)
	for i := range n {
		opens = append(opens, member(i, on.Name).start)
	}
	e.Servers, err = OpenAll(ctx, opens...)
	if err == nil && connect != nil {
		err = connect(e)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Close removes the containers and their network.
func (e *Ensemble) Close() error {
	return errors.Join(e.Servers.Close(), e.network.Remove(context.Background()))
}
