package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// "Each outage is told once, and its end."
func TestCheck_logs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var answer error
		p := &parts{log: slog.New(slog.NewTextHandler(&log, nil))}
		check := p.check("database", func(context.Context) error { return answer })
		ask := func(times int, want error) {
			t.Helper()
			answer = want
			for range times {
				if got := check.Ping(t.Context()); !errors.Is(got, want) {
					t.Fatalf("got %v, want %v", got, want)
				}
				time.Sleep(time.Second)
			}
		}
		want := func(when string, lines ...string) {
			t.Helper()
			got := strings.Count(log.String(), "\n")
			for _, line := range lines {
				if !strings.Contains(log.String(), line) {
					t.Errorf("%s: got log %s, want %q in it", when, &log, line)
				}
			}
			if got != len(lines) {
				t.Errorf("%s: got %d lines, want %d:\n%s", when, got, len(lines), &log)
			}
			log.Reset()
		}
		ask(60, nil)
		want("all is well")
		ask(60, errors.New("connection refused"))
		want("no answer for a minute", `level=WARN msg="server does not answer, so the shop is not ready" server=database error="connection refused"`)
		ask(60, nil)
		want("answers again", `level=INFO msg="server answers again" server=database`)
	})
}
