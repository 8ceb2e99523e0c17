package zklock_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/testserver"
)

// proxy stands between a Backend and its server, and understands the frames that pass: it counts requests, loses
// answers, and holds everything back, as a network does that has silently broken.
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

// loseAnswer cuts the connection instead of passing on the next answer to this request, which the server has carried
// out by then. The channel is closed then.
func (p *proxy) loseAnswer(op int32) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose[op] = make(chan struct{})
	return p.lose[op]
}

// loseAnswerAndShut lets no client in from then on, until open.
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

// shut cuts, and lets no client in until open.
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

// The protocol's numbers of the requests that tests look for.
const (
	opCreate   = 1
	opDelete   = 2
	opChildren = 12
)

// pass copies frames for as long as see agrees.
func pass(from, to net.Conn, see func(n int, frame []byte) bool) {
	for n := 0; ; n++ {
		frame := make([]byte, 4)
		if _, err := io.ReadFull(from, frame); err != nil {
			return
		}
		frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
		if _, err := io.ReadFull(from, frame[4:]); err != nil {
			return
		}
		if !see(n, frame[4:]) {
			return
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

func (p *proxy) request(n int, frame []byte, ops map[int32]int32) bool {
	p.await()
	if n == 0 { // the handshake
		return true
	}
	xid, op := int32(binary.BigEndian.Uint32(frame)), int32(binary.BigEndian.Uint32(frame[4:]))
	p.mu.Lock()
	defer p.mu.Unlock()
	ops[xid] = op
	p.counts[op]++
	return true
}

func (p *proxy) answer(n int, frame []byte, ops map[int32]int32) bool {
	p.await()
	p.mu.Lock()
	defer p.mu.Unlock()
	if n == 0 {
		p.session = granted{
			id:       int64(binary.BigEndian.Uint64(frame[8:])),
			password: frame[20:36],
		}
		return true
	}
	xid := int32(binary.BigEndian.Uint32(frame))
	if xid == -1 {
		p.events++
	}
	op := ops[xid]
	lost := p.lose[op]
	if lost == nil {
		p.answered[op]++
		p.passed.Broadcast()
		return true
	}
	delete(p.lose, op)
	p.refuse = p.refuse || p.shutToo
	close(lost)
	return false
}

// count returns how many requests of this kind have passed.
func (p *proxy) count(op int32) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[op]
}

// counted returns a channel that is closed when n requests of this kind have been answered.
func (p *proxy) counted(op int32, n int) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.mu.Lock()
		defer p.mu.Unlock()
		for p.answered[op] < n && !p.over {
			p.passed.Wait()
		}
	}()
	return done
}

// eventCount returns how many watches the server has called.
func (p *proxy) eventCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events
}

// expire ends the session behind its owner's back: it takes the session over and closes it. The owner is kept out
// meanwhile: the server throws out who was there before, and one who comes back while the session ends gets no more
// answers.
func (p *proxy) expire(t testing.TB) {
	t.Helper()
	p.expireAndShut(t)
	p.open()
}

// expireAndShut leaves the owner out, who does not know yet.
func (p *proxy) expireAndShut(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	s := p.session
	p.mu.Unlock()
	p.shut()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if p.closeSession(t, s) {
			return
		}
	}
	t.Fatal("the session does not end")
}

// closeSession reports whether the session has expired before.
func (p *proxy) closeSession(t testing.TB, s granted) bool {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	be := binary.BigEndian
	hello := be.AppendUint32(nil, 44) // length
	hello = be.AppendUint32(hello, 0) // protocol
	hello = be.AppendUint64(hello, 0) // last zxid seen
	hello = be.AppendUint32(hello, 60_000)
	hello = be.AppendUint64(hello, uint64(s.id))
	hello = be.AppendUint32(hello, uint32(len(s.password)))
	hello = append(hello, s.password...)
	opClose := int32(-11)
	closing := be.AppendUint32(hello, 8)
	closing = be.AppendUint32(closing, 1) // xid
	closing = be.AppendUint32(closing, uint32(opClose))
	if _, err := conn.Write(closing); err != nil {
		return false
	}
	answers, _ := io.ReadAll(conn) // until the server hangs up
	return len(answers) >= 20 && be.Uint64(answers[12:]) == 0
}
