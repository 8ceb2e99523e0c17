package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/singleflight"

	"example.com/shop/internal/order"
)

const (
	askEvery     = 200 * time.Millisecond
	awaitPrimary = 2 * time.Second // for which new connections wait after the loss of a primary
)

// group connects to the primary of several hosts: the host that takes writes. The group asks each host five times a
// second, on a connection of its own, and asks again on each new connection before it is used.
//
// If a host says that it is not the primary, the group closes the connections to it, even while a statement waits. If a
// host does not answer, the group closes the connections to it once another host is the primary. So a slow server keeps
// its connections, and a COMMIT that a paused or isolated server never answers does not keep its place in the pool.
type group struct {
	members  []*member
	stop     context.CancelFunc
	watching sync.WaitGroup

	mu      sync.Mutex
	primary *member       // nil for none
	last    *member       // the last primary
	changes int           // number of changes of last
	lost    time.Time     // when the last primary was lost
	found   chan struct{} // closed while there is a primary

	confirming sync.Mutex         // held while a commit of confirm runs
	next       singleflight.Group // shares the next commit
}

// member is one of the hosts. The group's mutex guards reason and conns.
type member struct {
	host    string
	timeout time.Duration        // for a new connection and the answer to the question
	watch   driver.Connector     // opens the connection that asks
	pool    driver.Connector     // opens the connections of the pool
	reason  error                // the reason why it is not the primary; nil if it says that it is
	conns   map[*memberConn]bool // connections of the pool
}

// newGroup watches the hosts until close.
func newGroup(ctx context.Context, configs []*mysql.Config) (*group, error) {
	g := &group{lost: time.Now(), found: make(chan struct{})}
	for _, config := range configs {
		m := &member{host: config.Addr, timeout: config.Timeout, reason: noPrimaryError{"was not asked yet", true}, conns: map[*memberConn]bool{}}
		watch, err := mysql.NewConnector(config)
		if err != nil {
			return nil, err
		}
		config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return g.dial(ctx, m, network, addr)
		}
		pool, _ := mysql.NewConnector(config) // as valid as the other
		m.watch, m.pool = ownSession{watch, session}, ownSession{pool, session}
		g.members = append(g.members, m)
	}
	ctx, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, m := range g.members {
		g.watching.Go(func() { g.watch(ctx, m) })
	}
	return g, nil
}

func (g *group) close() {
	g.stop()
	g.watching.Wait()
}

func (g *group) Driver() driver.Driver { return g.members[0].pool.Driver() }

// Connect implements driver.Connector. It waits for a primary for a short time, so that transactions do not notice a
// planned change of the primary. After that time it fails at once, with a noPrimaryError, because the pool opens the
// connections for its waiting callers one after the other.
func (g *group) Connect(ctx context.Context) (driver.Conn, error) {
	g.mu.Lock()
	began := time.Now()
	if g.primary == nil {
		began = g.lost
	}
	g.mu.Unlock()
	waiting, cancel := context.WithDeadline(ctx, began.Add(awaitPrimary))
	defer cancel()
	for m := g.await(waiting); m != nil && waiting.Err() == nil; m = g.await(waiting) {
		conn, err := m.ask(ctx, m.pool, nil)
		if host, _, _ := g.state(); err == nil && host == m.host {
			return conn, nil
		}
		if conn != nil {
			_ = conn.Close()
		}
		switch {
		case err == nil: // another host has become the primary meanwhile
		case ctx.Err() != nil || slices.Contains([]uint16{1040, 1203, 1226}, mysqlNumber(err)):
			return nil, withCause(ctx, err) // too many connections, or a caller that gave up, say nothing about the member
		default:
			g.note(m, err)
		}
	}
	return nil, withCause(ctx, g.why())
}

// await returns the primary as soon as there is one, or nil when ctx ends.
func (g *group) await(ctx context.Context) *member {
	for {
		g.mu.Lock()
		primary, found := g.primary, g.found
		g.mu.Unlock()
		if primary != nil {
			return primary
		}
		select {
		case <-found:
		case <-ctx.Done():
			return nil
		}
	}
}

// watch asks one member until ctx ends, and reconnects after an error.
func (g *group) watch(ctx context.Context, m *member) {
	var conn driver.Conn
	for ctx.Err() == nil {
		var reason error
		conn, reason = m.ask(ctx, m.watch, conn)
		g.note(m, reason)
		_ = order.Pause(ctx, askEvery)
	}
	if conn != nil {
		_ = conn.Close()
	}
}

// note keeps a member's answer. A primary stays the primary until it says otherwise or is silent, whatever the others
// say: another host that was paused may not know yet that it was replaced.
func (g *group) note(m *member, reason error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.reason = reason
	switch {
	case reason == nil && g.primary == nil:
		if g.last != nil && g.last != m {
			g.changes++
		}
		g.primary, g.last = m, m
		close(g.found)
	case reason != nil && g.primary == m:
		g.primary, g.lost = nil, time.Now()
		g.found = make(chan struct{})
	}
	for _, other := range g.members {
		if other == g.primary || g.primary == nil && !errors.As(other.reason, new(noPrimaryError)) {
			continue
		}
		for conn := range other.conns {
			_ = conn.TCPConn.Close() // a waiting statement gets an error
		}
	}
}

// confirm returns the result of a commit that begins after the call. Concurrent calls share one commit.
func (g *group) confirm(ctx context.Context, commit func(context.Context) error) error {
	done := g.next.DoChan("", func() (any, error) {
		g.confirming.Lock()
		defer g.confirming.Unlock()
		g.next.Forget("") // later calls share the next commit
		return nil, commit(context.WithoutCancel(ctx))
	})
	select {
	case result := <-done:
		return result.Err
	case <-ctx.Done():
		return ended(ctx)
	}
}

// state returns the primary's host, or a noPrimaryError, and how often another host has become the primary.
func (g *group) state() (host string, changes int, err error) {
	g.mu.Lock()
	primary, changes := g.primary, g.changes
	g.mu.Unlock()
	if primary == nil {
		return "", changes, g.why()
	}
	return primary.host, changes, nil
}

// why returns a noPrimaryError with the reasons of all hosts.
func (g *group) why() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var none noPrimaryError
	var reasons []string
	for _, m := range g.members {
		reason := "says that it is the primary again"
		if m.reason != nil {
			reason = m.reason.Error()
		}
		reasons = append(reasons, m.host+": "+reason)
		none.mayRecover = none.mayRecover || m.reason == nil || mayRecover(m.reason)
	}
	none.text = "no host takes writes: " + strings.Join(reasons, "; ")
	return none
}

// primaryQuestion asks why a server is not the primary. The answer is empty if it is the primary. MariaDB, which has
// neither such groups nor this table, skips the comments that begin with /*!80000; from 12.0 on, its
// read_only is a word.
//
// More than half of the members must be reachable; a member that recovers counts. A primary without a majority still
// answers, and is not read-only, but its commits wait for ever. A restarted member that has not joined yet has no id,
// and may take writes that the group never gets.
const primaryQuestion = `SELECT CASE
	/*!80000
	WHEN MAX(MEMBER_ID IN ('', @@server_uuid) AND MEMBER_STATE <> 'ONLINE')
		THEN CONCAT('its state in the group is ', MAX(IF(MEMBER_ID IN ('', @@server_uuid), MEMBER_STATE, '')))
	WHEN MAX(MEMBER_ID = @@server_uuid AND MEMBER_ROLE <> 'PRIMARY') THEN 'it is a secondary'
	WHEN 2 * SUM(MEMBER_STATE <> 'UNREACHABLE') <= COUNT(*)
		THEN CONCAT('it has no majority: it reaches ', SUM(MEMBER_STATE <> 'UNREACHABLE'), ' of ', COUNT(*), ' members')
	*/
	WHEN CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF') /*!80000 OR @@global.super_read_only */ THEN 'it is read-only'
	ELSE '' END
	/*!80000 FROM performance_schema.replication_group_members */`

// ask asks a member whether it is the primary, on conn or, if it is nil, on a new connection. It
// returns the connection, or nil if the connection does not work, and a noPrimaryError if the member
// says that it is not the primary.
func (m *member) ask(ctx context.Context, by driver.Connector, conn driver.Conn) (_ driver.Conn, err error) {
	limited, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if conn == nil {
		if conn, err = by.Connect(limited); err != nil {
			return nil, m.explain(ctx, err)
		}
	}
	//nolint:forcetypeassert // the driver's connections do
	rows, err := conn.(driver.QueryerContext).QueryContext(limited, primaryQuestion, nil)
	answer := make([]driver.Value, 1)
	if err == nil {
		err = errors.Join(rows.Next(answer), rows.Close())
	}
	if err != nil {
		_ = conn.Close()
		return nil, m.explain(ctx, err)
	}
	if reason := fmt.Sprintf("%s", answer[0]); reason != "" {
		return conn, noPrimaryError{reason, true}
	}
	return conn, nil
}

// explain adds advice to an error, or says how long the member was silent.
func (m *member) explain(ctx context.Context, err error) error {
	switch {
	case mysqlNumber(err) == 1142: // ER_TABLEACCESS_DENIED_ERROR
		return fmt.Errorf("%w: with several hosts, the user needs GRANT SELECT ON performance_schema.replication_group_members", err)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Errorf("no answer for %v: %w", m.timeout, os.ErrDeadlineExceeded)
	}
	return err
}

// noPrimaryError has a member's own reason why it is not the primary, or the reasons of all hosts. It does not wrap the
// reasons, because a request may be repeated after any of them.
type noPrimaryError struct {
	text       string
	mayRecover bool // waiting can help
}

func (e noPrimaryError) Error() string { return e.text }

// dial opens a connection of the pool and remembers it until it is closed.
func (g *group) dial(ctx context.Context, m *member, network, addr string) (net.Conn, error) {
	opened, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	conn := &memberConn{opened.(*net.TCPConn), g, m} //nolint:forcetypeassert // the DSN's network is TCP
	g.mu.Lock()
	defer g.mu.Unlock()
	m.conns[conn] = true
	return conn, nil
}

// memberConn is a network connection to a member.
type memberConn struct {
	*net.TCPConn
	group  *group
	member *member
}

func (c *memberConn) Close() error {
	c.group.mu.Lock()
	delete(c.member.conns, c)
	c.group.mu.Unlock()
	return c.TCPConn.Close()
}
