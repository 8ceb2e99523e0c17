package testserver

import (
	"context"
	"net"
	"net/netip"
	"strconv"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
)

// freePorts returns n different ports that nobody listens on.
func freePorts(ctx context.Context, n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }() // all at the end: the same port is not given twice
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// publish makes ports of the container the same ones of this machine's loopback.
func publish(ports []int) testcontainers.CustomizeRequestOption {
	return func(req *testcontainers.GenericContainerRequest) error {
		bindings := network.PortMap{}
		req.ExposedPorts = nil
		for _, port := range ports {
			name := strconv.Itoa(port) + "/tcp"
			req.ExposedPorts = append(req.ExposedPorts, name)
			bindings[network.MustParsePort(name)] = []network.PortBinding{
				{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), HostPort: strconv.Itoa(port)},
			}
		}
		return testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			host.PortBindings = bindings
		})(req)
	}
}

// local is the address of a port that publish published.
func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
