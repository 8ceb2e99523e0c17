package testserver

import (
	"context"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
)

// network makes one on which servers find each other by name. It is removed when t ends, after the servers that are
// started on it.
func (p *servers) network(t testing.TB) (name string) {
	t.Helper()
	p.mu.Lock()
	ctx := p.ctx
	p.starting.Add(1)
	p.mu.Unlock()
	defer p.starting.Done()
	n, err := network.New(ctx)
	if err != nil {
		t.Fatalf("testserver: make a network: %v", err)
	}
	p.mu.Lock()
	p.networks[n] = struct{}{}
	p.mu.Unlock()
	t.Cleanup(func() {
		if err := p.removeNetwork(n); err != nil {
			t.Errorf("testserver: remove network %s: %v", n.Name, err)
		}
	})
	return n.Name
}

func (p *servers) removeNetwork(n *testcontainers.DockerNetwork) error {
	p.mu.Lock()
	delete(p.networks, n)
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return n.Remove(ctx)
}
