package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// running is a container. It is there beside an error, too, if it was made.
type running struct {
	container testcontainers.Container
	addr      string
}

// start runs a container and returns when its server answers.
func start(ctx context.Context, k kind) (running, error) {
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithExposedPorts(k.port),
		testcontainers.WithEnv(k.env),
		testcontainers.WithLogger(silent{}),
		testcontainers.WithWaitStrategyAndDeadline(starting, wait.ForNop(k.await)),
	}
	if k.command != nil {
		options = append(options, testcontainers.WithCmd(k.command...))
	}
	container, err := testcontainers.Run(ctx, k.imageName(), options...)
	var r running
	if container != nil {
		r.container = container
	}
	if err == nil {
		r.addr, err = k.reach(ctx, container)
	}
	if err != nil {
		return r, fmt.Errorf("start %s from %s: %w; %s names another image", k.name, k.imageName(), err, k.variable)
	}
	return r, nil
}

// await polls until the server answers. The strategies that come with
// testcontainers look for log lines of particular images, or take an open port for
// a server.
func (k kind) await(ctx context.Context, target wait.StrategyTarget) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		state, err := target.State(ctx)
		if err == nil && !state.Running && state.Status != "created" {
			return fmt.Errorf("the container ended with code %d", state.ExitCode)
		}
		addr, err := k.address(ctx, target)
		if err == nil {
			err = k.ask(ctx, addr)
		}
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// ask is ready with a limit of its own.
func (k kind) ask(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return k.ready(ctx, addr)
}

// reach prefers the container's own address, which spares each byte the way
// through Docker's proxy. It can be reached where Docker runs on this Linux.
func (k kind) reach(ctx context.Context, c *testcontainers.DockerContainer) (string, error) {
	if ip, err := c.ContainerIP(ctx); err == nil && ip != "" {
		number, _, _ := strings.Cut(k.port, "/")
		direct := net.JoinHostPort(ip, number)
		if k.ask(ctx, direct) == nil {
			return direct, nil
		}
	}
	return k.address(ctx, c)
}

func (k kind) address(ctx context.Context, target wait.StrategyTarget) (string, error) {
	host, err := target.Host(ctx)
	if err != nil {
		return "", err
	}
	port, err := target.MappedPort(ctx, k.port)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, port.Port()), nil
}

// silent is a logger for a library that announces each step.
type silent struct{}

func (silent) Printf(string, ...any) {}
