package testserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
)

// The ports of servers are above those of rediscluster.sh's buses and below 32768, where Linux begins to take the ports of
// outgoing connections and Docker those that it may choose: neither takes one before its server binds it, or while its
// server is killed.
const firstPort, endPort = 12000, 32000

var (
	givenMu sync.Mutex
	given   = map[int]bool{} // by freePorts, in this process
)

// freePorts returns n ports that nobody listens on, at no address, and that no call returned before.
func freePorts(ctx context.Context, n int) ([]int, error) {
	givenMu.Lock()
	defer givenMu.Unlock()
	var ports []int
	var err error
	for tries := 0; len(ports) < n; tries++ {
		if tries == 100*n { // most are free
			return nil, fmt.Errorf("found %d of %d free ports: %w", len(ports), n, err)
		}
		port := firstPort + rand.IntN(endPort-firstPort)
		if given[port] {
			continue
		}
		var listener net.Listener
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", ":"+strconv.Itoa(port)); err != nil {
			continue
		}
		_ = listener.Close()
		given[port] = true
		ports = append(ports, port)
	}
	return ports, nil
}

// portTaken tells whether Docker did not start a container because somebody else has one of its ports. A server that says
// so of a port inside writes a capital A.
func portTaken(err error) bool {
	return strings.Contains(err.Error(), "already allocated") || strings.Contains(err.Error(), "address already in use")
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
