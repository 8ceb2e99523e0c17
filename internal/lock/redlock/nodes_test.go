package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/redlock"
	"example.com/shop/internal/testserver"
)

// patience bounds what hangs; nothing that works takes this long.
const patience = 30 * time.Second

// startMiniredis returns an in-process server whose TTLs pass in real time.
func startMiniredis(t testing.TB) *miniredis.Miniredis {
	t.Helper()
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	return server
}

// startNodes returns five servers in this process.
func startNodes(t testing.TB) []*miniredis.Miniredis {
	t.Helper()
	servers := make([]*miniredis.Miniredis, 5)
	for i := range servers {
		servers[i] = startMiniredis(t)
	}
	return servers
}

func addrs(servers []*miniredis.Miniredis) []string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = s.Addr()
	}
	return all
}

// connect returns clients as New wants them, each behind a gate.
func connect(t testing.TB, addrs []string) ([]redis.UniversalClient, []*gate) {
	t.Helper()
	clients, gates := make([]redis.UniversalClient, len(addrs)), make([]*gate, len(addrs))
	for i, addr := range addrs {
		o, err := redis.ParseURL("redis://" + addr)
		testserver.Must(t, err)
		o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, -1, 1 // a node that is down fails at once
		client := redis.NewClient(o)
		gates[i] = &gate{}
		client.AddHook(gates[i])
		clients[i] = client
		t.Cleanup(func() { _ = client.Close() })
	}
	return clients, gates
}

// newBackend returns one on clients of its own, closed at the end of the test.
func newBackend(t testing.TB, addrs []string, o redlock.Options) (*redlock.Backend, []*gate) {
	t.Helper()
	clients, gates := connect(t, addrs)
	b := redlock.New(clients, o)
	t.Cleanup(func() {
		for _, g := range gates {
			g.open()
		}
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b, gates
}

// gate is a hook of a client that holds its requests, whatever becomes of their contexts: a client that never gives up.
type gate struct {
	mu      sync.Mutex
	barrier chan struct{}
	arrived chan string // names of the commands that are held; nil: not told

	late []string       // scripts, the next request of each of which is delayed
	kept []func() error // those requests
}

// delay keeps the next request of each script, as a network does that delivers it after the client has given it up.
func (g *gate) delay(scripts ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.late = scripts
}

// deliver sends what was kept, in its order.
func (g *gate) deliver(t testing.TB, want int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.kept) != want {
		t.Errorf("%d requests are late, want %d", len(g.kept), want)
	}
	for _, send := range g.kept {
		if err := send(); err != nil {
			t.Errorf("late request: %v", err)
		}
	}
}

func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.barrier == nil {
		g.barrier, g.arrived = make(chan struct{}), make(chan string, 100)
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.barrier != nil {
		close(g.barrier)
		g.barrier = nil
	}
}

// ProcessHook implements redis.Hook.
func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		g.mu.Lock()
		barrier, arrived := g.barrier, g.arrived
		late := slices.IndexFunc(g.late, func(script string) bool {
			return cmd.Name() == "evalsha" && slices.ContainsFunc(redlock.Scripts(), func(s lock.Script) bool {
				return s.Name == script && s.Hash() == cmd.Args()[1]
			})
		})
		if late >= 0 {
			g.late = slices.Delete(g.late, late, late+1)
			again := redis.NewCmd(context.WithoutCancel(ctx), cmd.Args()...)
			g.kept = append(g.kept, func() error { return next(context.WithoutCancel(ctx), again) })
		}
		g.mu.Unlock()
		if late >= 0 {
			return context.DeadlineExceeded
		}
		if barrier != nil {
			arrived <- cmd.Name()
			<-barrier
			// The request is on its way and will be heard, however late.
			ctx = context.WithoutCancel(ctx)
		}
		return next(ctx, cmd)
	}
}

// DialHook implements redis.Hook.
func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// listenDeaf returns the address of a server that accepts and never answers.
func listenDeaf(t testing.TB) string {
	t.Helper()
	link := testserver.LinkTo(t, "")
	link.Silence(true, true)
	return link.Addr
}

// bounded returns a context that ends with the tests' patience.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// mustGrant fails the test unless the claim is granted at the first try.
func mustGrant(t testing.TB, b lock.Backend, c lock.Claim) {
	t.Helper()
	if g, err := b.Acquire(bounded(t), c); err != nil || g.Held {
		t.Fatalf("Acquire: %+v, %v; want a grant", g, err)
	}
}

// mustBeEmpty fails the test if a node keeps anything. The backend is closed first: what it gives back in the
// background has been given back then.
func mustBeEmpty(t testing.TB, b lock.Backend, servers ...*miniredis.Miniredis) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for i, s := range servers {
		if keys := s.Keys(); len(keys) > 0 {
			t.Errorf("node %d keeps %q", i, keys)
		}
	}
}

// awaitEmpty waits until the nodes keep nothing. It goes before mustBeEmpty where the NodeTimeout is short: Close does
// not wait longer for what is given back.
func awaitEmpty(t testing.TB, servers ...*miniredis.Miniredis) {
	t.Helper()
	for i, s := range servers {
		testserver.Until(t, fmt.Sprintf("node %d keeps nothing", i), patience, func() bool { return len(s.Keys()) == 0 })
	}
}
