package testserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// pool holds the servers of this process. It is a global because nothing but TestMain spans the tests of a package, and
// TestMain cannot hand them anything.
var pool servers

type servers struct {
	mu       sync.Mutex
	ctx      context.Context // ends when close begins; nil before open
	cancel   context.CancelFunc
	starting sync.WaitGroup
	byKind   map[string]*shared
	alive    map[*Server]struct{} // shared or a test's own: all that close has to remove
	networks map[*testcontainers.DockerNetwork]struct{}
}

// shared is one container, started at most once; a failure is remembered, so that each test fails with it at once.
type shared struct {
	once   sync.Once
	server *Server
	err    error
}

func (p *servers) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.byKind, p.alive = map[string]*shared{}, map[*Server]struct{}{}
	p.networks = map[*testcontainers.DockerNetwork]struct{}{}
}

// shared returns the package's server of a kind, and starts it if this is the first call.
func (p *servers) shared(t testing.TB, k kind) *Server {
	t.Helper()
	p.ready(t, k)
	p.mu.Lock()
	entry := p.byKind[k.name]
	if entry == nil {
		entry = &shared{}
		p.byKind[k.name] = entry
	}
	p.mu.Unlock()

	entry.once.Do(func() {
		entry.server, entry.err = p.start(k, startOptions{})
		if entry.err == nil {
			t.Logf("testserver: %s", entry.server)
		}
	})
	if entry.err != nil {
		t.Fatalf("testserver: %v", entry.err)
	}
	return entry.server
}

// own starts a server that is removed when t ends.
func (p *servers) own(t testing.TB, k kind, o startOptions) *Server {
	t.Helper()
	p.ready(t, k)
	s, err := p.start(k, o)
	if err != nil {
		t.Fatalf("testserver: %v", err)
	}
	p.owned(t, s)
	return s
}

// owned lets the server be removed when t ends.
func (p *servers) owned(t testing.TB, s *Server) {
	t.Helper()
	t.Cleanup(func() {
		if err := p.remove(s); err != nil {
			t.Errorf("testserver: remove %s: %v", s, err)
		}
	})
	t.Logf("testserver: %s", s)
}

// ready skips or fails the test unless a server of this kind can be started and will be removed.
func (p *servers) ready(t testing.TB, k kind) {
	t.Helper()
	need(t, k)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil {
		t.Fatal("testserver: TestMain of this package has to call testserver.Main or Wrap, which remove the containers")
	}
}

func (p *servers) start(k kind, o startOptions) (*Server, error) {
	p.mu.Lock()
	ctx := p.ctx
	p.starting.Add(1)
	p.mu.Unlock()
	defer p.starting.Done()
	s, err := start(ctx, k, o)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive[s] = struct{}{}
	return s, nil
}

func (p *servers) remove(s *Server) error {
	p.mu.Lock()
	delete(p.alive, s)
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.terminate(ctx)
}

// close removes every container, also one that a test is starting when the process is interrupted, and the networks.
func (p *servers) close() error {
	p.cancel()
	p.starting.Wait()
	p.mu.Lock()
	left, networks := p.alive, p.networks
	p.alive, p.networks = nil, nil
	p.mu.Unlock()
	var failed []error
	for s := range left {
		if err := p.remove(s); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s, err))
		}
	}
	for n := range networks {
		if err := p.removeNetwork(n); err != nil {
			failed = append(failed, fmt.Errorf("network %s: %w", n.Name, err))
		}
	}
	return errors.Join(failed...)
}
