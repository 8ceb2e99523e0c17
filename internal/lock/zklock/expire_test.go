package zklock_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
)

// expire ends the session behind its owner's back: it takes the session over and
// closes it. The owner is kept out meanwhile: the server throws out who was there
// before, and one who comes back while the session ends gets no more answers.
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
