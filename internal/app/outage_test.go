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

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// moody is a Redis that lets every request through, or fails, without a network.
type moody struct {
	redis.UniversalClient
	err error
}

func (m *moody) EvalSha(_ context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	return redis.NewCmdResult([]any{int64(1), int64(0), "-1", "0"}, m.err)
}

// "Each outage is told once", also one in which only some requests fail.
func TestLimiter_partialOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &moody{}
		var log bytes.Buffer
		l := &limiter{
			rate: redis_rate.NewLimiter(server), limit: redis_rate.PerSecond(1), closed: true,
			log: slog.New(slog.NewTextHandler(&log, nil)),
		}
		request := func(err error) {
			t.Helper()
			server.err = err
			if _, got := l.Allow(t.Context(), "ann"); !errors.Is(got, err) {
				t.Fatalf("got %v, want %v", got, err)
			}
		}
		want := func(when string, began, ended int) {
			t.Helper()
			b, e := strings.Count(log.String(), "cannot be counted"), strings.Count(log.String(), "counted again")
			if b != began || e != ended {
				t.Errorf("%s: outages began %d times and ended %d times, want %d and %d:\n%s", when, b, e, began, ended, &log)
			}
		}
		failure := errors.New("no answer")
		request(nil)
		want("at first", 0, 0)
		for range 100 {
			request(failure)
			request(nil)
			time.Sleep(calm / 2)
			request(nil)
		}
		want("some fail", 1, 0)
		time.Sleep(calm / 2)
		request(nil)
		want("none has failed for a while", 1, 1)
		request(nil)
		time.Sleep(calm)
		request(nil)
		want("all is well", 1, 1)
		request(failure)
		want("the next outage", 2, 1)
	})
}
