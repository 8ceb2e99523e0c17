package measure

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// seen is one line of MONITOR: who sent what.
type seen struct{ addr, command string }

// monitor returns the commands that Redis gets while the time passes, without
// those that scripts send.
func monitor(ctx context.Context, addr string, total time.Duration) ([]seen, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := io.WriteString(conn, "MONITOR\r\n"); err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(total)); err != nil {
		return nil, err
	}
	var all []seen
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if s, ok := parseMonitor(lines.Text()); ok {
			all = append(all, s)
		}
	}
	if err := lines.Err(); ctx.Err() == nil && !isTimeout(err) {
		return nil, fmt.Errorf("MONITOR ended early: %w", cmp.Or[error](err, io.ErrUnexpectedEOF))
	}
	return all, ctx.Err()
}

// parseMonitor reads a line such as
//
//	+1339518083.107412 [0 127.0.0.1:60866] "set" "key" "value"
//
// and reports whether it is a client's command.
func parseMonitor(line string) (seen, bool) {
	_, rest, ok := strings.Cut(line, " [")
	if !ok {
		return seen{}, false
	}
	from, command, ok := strings.Cut(rest, "] ")
	if !ok {
		return seen{}, false
	}
	_, addr, _ := strings.Cut(from, " ")
	if addr == "lua" {
		return seen{}, false
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(command, `"`), `"`)
	return seen{addr, strings.ToUpper(name)}, true
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
