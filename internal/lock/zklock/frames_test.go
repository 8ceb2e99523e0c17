package zklock_test

import (
	"encoding/binary"
	"io"
	"net"
)

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

// counted returns a channel that is closed when n requests of this kind have
// been answered.
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
