package zklock_test

import (
	"net"
	"sync"
	"testing"

	"example.com/shop/internal/lock/testserver"
)

// proxy stands between a Backend and its server, and understands the frames that
// pass: it counts requests, loses answers, and holds everything back, as a
// network does that has silently broken.
type proxy struct {
	addr, server string

	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	counts   map[int32]int           // of requests, by their number
	answered map[int32]int           // the same of answers
	passed   *sync.Cond              // an answer has
	over     bool                    // the test has ended
	events   int                     // of watches, from the server
	lose     map[int32]chan struct{} // cut instead of the next answer to this; closed then
	gate     chan struct{}           // nothing passes until it is closed; nil: all passes
	shutToo  bool                    // with the lost answer
	refuse   bool                    // new connections are closed at once
	session  granted
}

// granted is what the server's first answer tells.
type granted struct {
	id       int64
	password []byte
}

func newProxy(t testing.TB, server string) *proxy {
	t.Helper()
	p := &proxy{
		server:   server,
		conns:    make(map[net.Conn]struct{}),
		counts:   make(map[int32]int),
		answered: make(map[int32]int),
		lose:     make(map[int32]chan struct{}),
	}
	p.passed = sync.NewCond(&p.mu)
	p.addr = testserver.Relay(t, server, p.carry)
	t.Cleanup(func() {
		p.thaw()
		p.mu.Lock()
		p.over = true
		p.mu.Unlock()
		p.passed.Broadcast()
	})
	return p
}

// carry passes the frames of one connection on.
func (p *proxy) carry(client, server net.Conn) {
	p.mu.Lock()
	p.conns[client], p.conns[server] = struct{}{}, struct{}{}
	refuse := p.refuse
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, client)
		delete(p.conns, server)
		p.mu.Unlock()
	}()
	if refuse {
		return
	}
	ops := make(map[int32]int32) // what was asked, by xid; guarded by p.mu
	testserver.BothWays(client, server,
		func() {
			pass(client, server, func(n int, frame []byte) bool { return p.request(n, frame, ops) })
		},
		func() {
			pass(server, client, func(n int, frame []byte) bool { return p.answer(n, frame, ops) })
		})
}

func (p *proxy) await() {
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

// loseAnswer cuts the connection instead of passing on the next answer to this
// request, which the server has carried out by then. The channel is closed then.
func (p *proxy) loseAnswer(op int32) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose[op] = make(chan struct{})
	return p.lose[op]
}

// loseAnswerAndShut lets nobody in any more from then on, until open.
func (p *proxy) loseAnswerAndShut(op int32) <-chan struct{} {
	p.mu.Lock()
	p.shutToo = true
	p.mu.Unlock()
	return p.loseAnswer(op)
}

// freeze holds everything back until thaw; connections stay open.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = make(chan struct{})
}

func (p *proxy) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate != nil {
		close(p.gate)
		p.gate = nil
	}
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// shut cuts, and lets nobody in until open.
func (p *proxy) shut() {
	p.mu.Lock()
	p.refuse = true
	p.mu.Unlock()
	p.cut()
}

func (p *proxy) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse, p.shutToo = false, false
}
