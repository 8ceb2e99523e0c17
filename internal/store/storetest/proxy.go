package storetest

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/testserver"
)

// Fate is what becomes of a statement, and of the connection that it came on.
type Fate int

// The fates of a statement.
const (
	Pass Fate = iota // it is passed on, and so is its answer
	Drop             // it does not get to the server; both sides are hung up
	Mute             // it does, but its answer gets lost: the client is hung up on at once, the server when it has answered
	Hang             // as Drop, but the server does not notice until LetGo: its transaction stays open
)

// Proxy stands between a client and its MySQL or MariaDB and breaks connections. Its fields are set before the first
// connection.
type Proxy struct {
	// Refuse tells whether to hang up on a new connection; nil refuses none.
	Refuse func() bool

	// Judge decides about a statement, or a PING, before it is passed on, and may do something at that moment; nil lets
	// all pass. Connections ask it at once.
	Judge func(statement string) Fate

	target string

	mu      sync.Mutex
	hanging []net.Conn
}

// Through starts the proxy and returns the DSN that leads through it, until the test ends.
func (p *Proxy) Through(t testing.TB, dsn string) string {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p.target = config.Addr
	config.Addr = testserver.Listen(t, p.serve)
	t.Cleanup(p.LetGo)
	return config.FormatDSN()
}

// LetGo hangs up on the server where a statement's fate was Hang: it rolls back.
func (p *Proxy) LetGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, server := range p.hanging {
		_ = server.Close()
	}
	p.hanging = nil
}

func (p *Proxy) serve(client net.Conn) {
	if p.Refuse != nil && p.Refuse() {
		return
	}
	server, err := net.DialTimeout("tcp", p.target, time.Minute)
	if err != nil {
		return
	}
	defer server.Close()
	var answers sync.WaitGroup
	answers.Go(func() { // also to a client that was hung up on, so that a muted server is read to its end
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	p.requests(client, server)
	answers.Wait()
}

// requests passes on what the client sends, packet by packet, until one of the sides ends or a statement's fate is to
// be the last.
func (p *Proxy) requests(client, server net.Conn) {
	defer client.Close()
	in := bufio.NewReader(client)
	for {
		packet, err := readPacket(in)
		if err != nil {
			_ = server.Close()
			return
		}
		switch p.judge(packet) {
		case Drop:
			_ = client.Close()
			_ = server.Close()
			return
		case Hang:
			p.mu.Lock()
			p.hanging = append(p.hanging, server)
			p.mu.Unlock()
			return
		case Mute:
			_ = client.Close() // before the server can answer: io.Copy ends at its first word
			_, _ = server.Write(packet)
			return
		case Pass:
			if _, err := server.Write(packet); err != nil {
				return
			}
		}
	}
}

func (p *Proxy) judge(packet []byte) Fate {
	const header, query, ping = 4, 0x03, 0x0e // COM_QUERY, COM_PING
	if p.Judge == nil || len(packet) <= header || packet[header-1] != 0 {
		return Pass
	}
	switch packet[header] {
	case query:
		return p.Judge(string(packet[header+1:]))
	case ping:
		return p.Judge("PING")
	}
	return Pass
}

// readPacket reads a packet with its header: three bytes of length, the lowest first, and its number within the
// command, 0 for a new one.
func readPacket(in io.Reader) ([]byte, error) {
	packet := make([]byte, 4)
	if _, err := io.ReadFull(in, packet); err != nil {
		return nil, err
	}
	length := int(packet[0]) | int(packet[1])<<8 | int(packet[2])<<16
	packet = append(packet, make([]byte, length)...)
	_, err := io.ReadFull(in, packet[4:])
	return packet, err
}
