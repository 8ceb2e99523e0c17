package system

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Link is the network between one shop and one server: a relay in this process, which can be broken. One goroutine
// breaks it, while connections are open.
type Link struct {
	Addr string // where the shop connects to

	target   func() string // the server's address
	listener net.Listener
	sql      bool // MySQL's statements are read, for Judge

	requests, answers sync.RWMutex           // held while nothing may pass
	late              atomic.Pointer[func()] // waits before each answer
	judge             atomic.Pointer[func(statement string) Fate]
	heal              []func()

	closing context.Context //nolint:containedctx // of the connections
	close   context.CancelFunc
	all     sync.WaitGroup
}

// Fate is what becomes of a statement.
type Fate int

// The fates of a statement.
const (
	Pass Fate = iota // it is passed on, and so is its answer
	Drop             // it does not get to the server, and both sides are hung up on
	Mute             // it does, but its answer is lost
)

// newLink listens for a shop.
func newLink(ctx context.Context, sql bool, target func() string) (*Link, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{Addr: listener.Addr().String(), target: target, listener: listener, sql: sql}
	l.closing, l.close = context.WithCancel(context.WithoutCancel(ctx))
	l.all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			l.all.Go(func() { l.serve(client) })
		}
	})
	return l, nil
}

// Close ends the link and all of its connections.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.Heal()
	l.close()
	l.all.Wait()
	return err
}

// Silence keeps requests, answers or both from arriving, as a cable does that was pulled: connections stay open, and what
// was sent arrives after Heal.
func (l *Link) Silence(requests, answers bool) {
	if requests {
		l.requests.Lock()
		l.heal = append(l.heal, l.requests.Unlock)
	}
	if answers {
		l.answers.Lock()
		l.heal = append(l.heal, l.answers.Unlock)
	}
}

// Delay makes each answer late.
func (l *Link) Delay(d time.Duration) {
	healed := make(chan struct{})
	l.heal = append(l.heal, func() { close(healed) })
	wait := func() {
		select {
		case <-time.After(d):
		case <-healed:
		}
	}
	l.late.Store(&wait)
}

// Judge decides about each statement, before it is passed on. It may block, which holds up that connection alone.
func (l *Link) Judge(f func(statement string) Fate) { l.judge.Store(&f) }

// Heal ends Silence, Delay and Judge. An answer that is being delayed arrives now.
func (l *Link) Heal() {
	l.judge.Store(nil)
	l.late.Store(nil)
	for _, heal := range l.heal {
		heal()
	}
	l.heal = nil
}

func (l *Link) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	await(&l.requests) // nor can one connect
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(l.closing, "tcp", l.target())
	if err != nil {
		return
	}
	hangUp := func() { _, _ = client.Close(), server.Close() }
	defer hangUp()
	defer context.AfterFunc(l.closing, hangUp)()
	var answers sync.WaitGroup
	defer answers.Wait()
	answers.Go(func() {
		defer hangUp()
		l.carryAnswers(client, server)
	})
	muted := l.carryRequests(client, server)
	_ = client.Close()
	if !muted { // else when the server has answered: it might not read the statement before
		_ = server.Close()
	}
}

// await returns when what was sent may pass.
func await(gate *sync.RWMutex) {
	gate.RLock()
	gate.RUnlock() //nolint:staticcheck // nothing else is to be done meanwhile
}

func (l *Link) carryAnswers(client, server net.Conn) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if wait := l.late.Load(); wait != nil {
			(*wait)()
		}
		await(&l.answers)
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// carryRequests ends with the connection, or when a statement's fate is the end of it. It reports whether that was Mute.
func (l *Link) carryRequests(client, server net.Conn) (muted bool) {
	in := bufio.NewReaderSize(client, 16<<10)
	for {
		packet, err := l.read(in)
		if err != nil {
			return false
		}
		fate := Pass
		if judge := l.judge.Load(); judge != nil {
			if statement, ok := query(packet); ok {
				fate = (*judge)(statement)
			}
		}
		await(&l.requests)
		if fate == Drop {
			return false
		}
		if fate == Mute {
			_ = client.Close() // before the server can answer
		}
		if _, err := server.Write(packet); err != nil || fate == Mute {
			return err == nil
		}
	}
}

// read reads a packet of MySQL's protocol with its header: three bytes of length, the lowest first, and its number within
// the command, 0 for a new one. Of other protocols it reads what there is.
func (l *Link) read(in *bufio.Reader) ([]byte, error) {
	if !l.sql {
		if _, err := in.Peek(1); err != nil {
			return nil, err
		}
		chunk := make([]byte, in.Buffered())
		_, err := io.ReadFull(in, chunk)
		return chunk, err
	}
	header, err := in.Peek(4)
	if err != nil {
		return nil, err
	}
	packet := make([]byte, 4+(int(header[0])|int(header[1])<<8|int(header[2])<<16))
	_, err = io.ReadFull(in, packet)
	return packet, err
}

// query returns the text of a packet that begins a COM_QUERY.
func query(packet []byte) (string, bool) {
	if len(packet) < 5 || packet[3] != 0 || packet[4] != 3 {
		return "", false
	}
	return strings.TrimSpace(string(packet[5:])), true
}
