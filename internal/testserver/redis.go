package testserver

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis returns the host:port of a Redis that the tests of this package share. Keys and channels are shared with it: a
// test uses names of its own, and no FLUSHALL.
func Redis(t testing.TB) (addr string) {
	t.Helper()
	return share(t, redisKind()).addr
}

// RedisLike is Redis on another version or program. The variable names another image.
func RedisLike(t testing.TB, name, variable, image, program string) (addr string) {
	t.Helper()
	k := redisKind()
	k.name, k.variable, k.image, k.command[0] = name, variable, image, program
	return share(t, k).addr
}

//go:embed inside/clock.c
var clock string

// OpenRedisClock is OpenRedis of one whose clock SetClock changes. It needs gcc, and an image whose redis-server is linked
// dynamically with the C library of this machine or a newer one: Debian's, not Alpine's.
func OpenRedisClock(ctx context.Context) (*Server, error) {
	var problem strings.Builder
	compile := exec.CommandContext(ctx, "sh", "-c", `so=$(mktemp); trap 'rm "$so"' EXIT; gcc -shared -fPIC -O2 -xc - -o "$so" && cat "$so"`)
	compile.Stdin, compile.Stderr = strings.NewReader(clock), &problem
	shim, err := compile.Output()
	if err != nil {
		return nil, fmt.Errorf("build a clock with gcc: %w: %s", err, &problem)
	}
	k := redisKind()
	k.files = map[string][]byte{"/clock.so": shim}
	k.command = append([]string{"sh", "-c", setClock(0) + ` && LD_PRELOAD=/clock.so exec "$@" --protected-mode no`, "sh"}, k.command...)
	return open(ctx, k)
}

// SetClock makes the clock of OpenRedisClock differ from this machine's. A restarted server's does not.
func (s *Server) SetClock(ctx context.Context, offset time.Duration) error {
	return s.Exec(ctx, setClock(offset))
}

// setClock overwrites the file, which is mapped into memory.
func setClock(offset time.Duration) string {
	return fmt.Sprintf("printf %%-20d %d 1<>/tmp/clock", offset.Nanoseconds())
}

func redisKind() kind {
	return kind{
		name:     "Redis",
		variable: "SHOP_TEST_REDIS_IMAGE",
		image:    "redis:8",
		port:     6379,
		command:  []string{"redis-server", "--save", "", "--appendonly", "no"},
		memory:   map[string]string{"/data": "rw"},
		ready:    func(ctx context.Context, addr string) error { return askRedis(ctx, addr, "PING").Err() },
	}
}

// askRedis sends a command to a server.
func askRedis(ctx context.Context, addr string, command ...any) *redis.Cmd {
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: askLimit,
		DialerRetries: 1, // the default waits 0.4 s over a refused connection
	})
	defer func() { _ = rdb.Close() }()
	return rdb.Do(ctx, command...)
}
