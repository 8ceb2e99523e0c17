package zklock

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// dialer opens the client library's connections, one at a time, and reads from
// each what the server grants: the library tells nobody the session's timeout.
type dialer struct {
	dial     zk.Dialer
	patience time.Duration // for a server's first answer
	granted  func(session) (watching bool)

	mu     sync.Mutex
	last   net.Conn
	closed bool
}

func (d *dialer) open(network, address string, timeout time.Duration) (net.Conn, error) {
	if !d.replace(nil) { // the library leaves the last one open when a session has expired
		return nil, net.ErrClosed
	}
	conn, err := d.dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	if !d.replace(conn) {
		return nil, net.ErrClosed
	}
	return &handshake{Conn: conn, patience: d.patience, granted: d.granted}, nil
}

// replace closes the last connection. It reports whether there may be another.
func (d *dialer) replace(conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != nil {
		_ = d.last.Close() // mostly closed already
	}
	if d.last = conn; d.closed && conn != nil {
		_ = conn.Close()
	}
	return !d.closed
}

// close ends the connection, and keeps the library from opening another.
func (d *dialer) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.replace(nil)
}

// handshake is a connection that reads along in the server's first answer, which
// is: length, protocol version, timeout in milliseconds (4 bytes each), session
// (8 bytes), and a password. The session is 0 if the former one has expired.
//
// The library waits for that answer 6.7 session timeouts long, and for its second
// part for ever; a handshake is as patient as it is told to be.
type handshake struct {
	net.Conn
	patience time.Duration
	granted  func(session) (watching bool)
	answer   []byte
	over     bool
	resumed  *resumption // nil: there is nothing to wait for
}

const answerLen = 4 + 4 + 4 + 8

// Read calls granted before the library has seen the answer, and so before it
// sends a request in that session.
func (h *handshake) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if h.over {
		if h.resumed != nil && n > 0 {
			h.resumed.wait()
		}
		return n, err
	}
	if h.answer = append(h.answer, p[:n]...); len(h.answer) >= answerLen {
		s := session{
			id:      int64(binary.BigEndian.Uint64(h.answer[12:])),
			timeout: time.Duration(int32(binary.BigEndian.Uint32(h.answer[8:]))) * time.Millisecond,
		}
		if s.id == 0 {
			s.timeout = 0
		}
		h.over, h.answer = true, nil
		if h.granted(s) {
			h.resumed = newResumption()
		}
	}
	return n, err
}

// Write is called with one request at a time.
func (h *handshake) Write(p []byte) (int, error) {
	if h.resumed != nil {
		h.resumed.wrote(p)
	}
	return h.Conn.Write(p)
}

// SetReadDeadline is called by the library in the goroutine that reads.
func (h *handshake) SetReadDeadline(until time.Time) error {
	if latest := time.Now().Add(h.patience); !h.over && (until.IsZero() || until.After(latest)) {
		until = latest
	}
	return h.Conn.SetReadDeadline(until)
}
