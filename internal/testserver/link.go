package testserver

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Link is the network between a client and one server. It is a relay in this process. One goroutine may break it.
type Link struct {
	Addr string // where the client connects to

	target string // the server's address
	sql    bool   // the link reads MySQL's statements, for Judge
	stop   func()

	state atomic.Pointer[state]
	open  sync.Map // each *connection
}

// state says how the link treats traffic, until healed is closed. A state is never changed, only replaced.
type state struct {
	requests, answers <-chan struct{} // each closed while traffic in its direction may pass
	delay             time.Duration   // of each answer
	judge             func(statement string) Fate
	healed            chan struct{}
}

// connection is a client's connection to the link, and the link's to the server.
type connection struct {
	client, server net.Conn
	dead           atomic.Bool // the connection carries no more bytes
}

func (c *connection) hangUp() { _, _ = c.client.Close(), c.server.Close() }

// Fate decides how a statement ends.
type Fate int

// The fates of a statement.
const (
	Pass Fate = iota // the statement and its answer pass
	Drop             // the statement does not reach the server, and the link closes both connections
	Mute             // the statement reaches the server, but its answer is lost
	Hang             // like Drop, but the server does not notice until LetGo: its transaction stays open
)

// NewLink listens for a client until Close. With sql, the server is a MySQL or MariaDB, and Judge sees each statement.
func NewLink(ctx context.Context, sql bool, target string) (*Link, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{Addr: listener.Addr().String(), target: target, sql: sql}
	l.state.Store(&state{healed: make(chan struct{})})
	l.Heal() // lets all traffic pass
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	l.stop = func() {
		_ = listener.Close()
		end()
		running.Wait()
	}
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { l.serve(ctx, client) })
		}
	})
	return l, nil
}

// Judged returns a link to a database, on which judge decides about statements until the test ends, and its DSN.
func Judged(t testing.TB, dsn string, judge func(statement string) Fate) (string, *Link) {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	Must(t, err)
	l := linkTo(t, config.Addr, true)
	l.Judge(judge)
	config.Addr = l.Addr
	return config.FormatDSN(), l
}

// LinkTo returns a link to a server. It closes when the test ends.
func LinkTo(t testing.TB, server string) *Link { return linkTo(t, server, false) }

func linkTo(t testing.TB, server string, sql bool) *Link {
	t.Helper()
	l, err := NewLink(t.Context(), sql, server)
	Must(t, err)
	t.Cleanup(l.Close)
	return l
}

// Close ends the link and all of its connections.
func (l *Link) Close() {
	l.Heal()
	l.stop()
}

func (l *Link) change(change func(*state)) {
	s := *l.state.Load()
	change(&s)
	l.state.Store(&s)
}

// Silence holds back requests, answers or both, like a pulled cable: connections stay open, and the
// bytes that were sent arrive after Heal.
func (l *Link) Silence(requests, answers bool) {
	l.change(func(s *state) {
		if requests {
			s.requests = s.healed
		}
		if answers {
			s.answers = s.healed
		}
	})
}

// Delay delays each answer.
func (l *Link) Delay(d time.Duration) { l.change(func(s *state) { s.delay = d }) }

// Judge lets f decide about each statement before it passes, about a new connection, "CONNECT", and
// about a "PING". In a protocol other than MySQL's, f gets all bytes that clients send. f may block,
// which delays only that connection. Connections call f concurrently.
func (l *Link) Judge(f func(statement string) Fate) { l.change(func(s *state) { s.judge = f }) }

// Heal ends Silence, Delay and Judge. Delayed answers arrive now.
func (l *Link) Heal() {
	healed := l.state.Load().healed
	l.state.Store(&state{requests: healed, answers: healed, healed: make(chan struct{})})
	close(healed)
}

// Cut ends all connections. With silently, they stay open but carry no more bytes. Later connections work.
func (l *Link) Cut(silently bool) {
	for c := range l.open.Range {
		c.(*connection).dead.Store(true)
		if !silently {
			c.(*connection).hangUp()
		}
	}
}

// LetGo closes the connections to the server on which a statement had the fate Hang: the server rolls back.
func (l *Link) LetGo() {
	for c := range l.open.Range {
		if c := c.(*connection); c.dead.Load() {
			_ = c.server.Close()
		}
	}
}

func (l *Link) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	if l.sql && l.fate("CONNECT") != Pass {
		return
	}
	<-l.state.Load().requests // a new connection also waits
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", l.target)
	if err != nil {
		return
	}
	c := &connection{client: client, server: server}
	l.open.Store(c, nil)
	defer l.open.Delete(c)
	defer c.hangUp()
	defer context.AfterFunc(ctx, c.hangUp)()
	var answers sync.WaitGroup
	defer answers.Wait()
	answers.Go(func() {
		defer c.hangUp()
		l.carryAnswers(c)
	})
	switch l.carryRequests(c) {
	case Pass, Drop:
		_ = server.Close()
	case Mute: // closed when the server has answered: before, it might not have read the statement
	case Hang:
		c.dead.Store(true)
	}
	_ = client.Close()
}

func (l *Link) carryAnswers(c *connection) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := c.server.Read(buffer)
		if err != nil {
			return
		}
		if s := l.state.Load(); s.delay > 0 {
			select {
			case <-time.After(s.delay):
			case <-s.healed:
			}
		}
		<-l.state.Load().answers
		if c.dead.Load() {
			continue
		}
		if _, err := c.client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// carryRequests ends with the connection, or with a statement whose fate ends the connection. It returns the last fate.
func (l *Link) carryRequests(c *connection) Fate {
	in := bufio.NewReaderSize(c.client, 16<<10)
	for {
		packet, err := l.read(in)
		if err != nil {
			return Pass
		}
		fate := l.fate(l.command(packet))
		<-l.state.Load().requests
		if c.dead.Load() {
			continue
		}
		if fate == Drop || fate == Hang {
			return fate
		}
		if fate == Mute {
			_ = c.client.Close() // before the server can answer
		}
		if _, err := c.server.Write(packet); err != nil || fate == Mute {
			return fate
		}
	}
}

func (l *Link) fate(statement string) Fate {
	if judge := l.state.Load().judge; judge != nil && statement != "" {
		return judge(statement)
	}
	return Pass
}

// read reads a packet of MySQL's protocol with its header: three bytes of length, the lowest first, and the packet's
// number within the command, 0 for a new command. For other protocols, it reads the available bytes.
func (l *Link) read(in *bufio.Reader) ([]byte, error) {
	if !l.sql {
		chunk := make([]byte, 16<<10)
		n, err := in.Read(chunk)
		return chunk[:n], err
	}
	header, err := in.Peek(4)
	if err != nil {
		return nil, err
	}
	packet := make([]byte, 4+(int(header[0])|int(header[1])<<8|int(header[2])<<16))
	_, err = io.ReadFull(in, packet)
	return packet, err
}

// command returns the text that Judge gets: the statement of a COM_QUERY, PING for a COM_PING, or the
// bytes. It is empty for another packet.
func (l *Link) command(packet []byte) string {
	const query, ping = 0x03, 0x0e
	switch {
	case !l.sql:
		return string(packet)
	case len(packet) < 5 || packet[3] != 0:
		return ""
	case packet[4] == query:
		return strings.TrimSpace(string(packet[5:]))
	case packet[4] == ping:
		return "PING"
	}
	return ""
}
