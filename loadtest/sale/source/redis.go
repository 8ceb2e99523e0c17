package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/app"
	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/sale/process"
	"example.com/shop/loadtest/servers"
)

// Redis is where the shops keep their locks.
type Redis struct {
	Addr  string // host:port or URL, which may hold a password
	About string // for people
	stop  func() error
}

// Stop ends what OpenRedis started. Once is enough.
func (r *Redis) Stop() error {
	if r.stop == nil {
		return nil
	}
	return r.stop()
}

// OpenRedis takes the first that there is: the one given, a redis-server process,
// a container, the embedded server in this process. Dir is for the latter.
func OpenRedis(ctx context.Context, given, dir string) (*Redis, error) {
	if given != "" {
		host, err := app.RedisAddress(given)
		if err != nil {
			return nil, err
		}
		return named(ctx, &Redis{Addr: given}, "given, at "+host)
	}
	if path, err := exec.LookPath("redis-server"); err == nil {
		return redisProcess(ctx, path)
	}
	c, err := servers.StartRedis(ctx)
	if err == nil {
		return named(ctx, &Redis{Addr: c.Addr, stop: c.Close}, "a container of "+c.Image)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	embedded, err := app.StartEmbedded(dir)
	if err != nil {
		return nil, err
	}
	return &Redis{
		Addr: embedded.Redis(), stop: embedded.Close,
		About: "Redis protocol, embedded in this process (no --redis, redis-server or Docker): slower than Redis, and its work counts as the client's",
	}, nil
}

func redisProcess(ctx context.Context, path string) (*Redis, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sale-redis-")
	if err != nil {
		return nil, err
	}
	args := []string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no",
		"--loglevel", "notice", "--logfile", "",
	}
	p, err := process.Start(ctx, path, args, nil, "")
	if err != nil {
		return nil, cleanup.Join(err, os.RemoveAll(dir))
	}
	r := &Redis{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		stop: func() error { return errors.Join(p.Stop(), os.RemoveAll(dir)) },
	}
	return named(ctx, r, "a process of "+path)
}

// named waits until the server tells its version.
func named(ctx context.Context, r *Redis, kind string) (*Redis, error) {
	options, err := redis.ParseURL(r.Addr)
	if !strings.Contains(r.Addr, "://") {
		options, err = &redis.Options{Addr: r.Addr}, nil
	}
	if err != nil {
		return nil, cleanup.Join(err, r.Stop())
	}
	options.DialTimeout, options.MaxRetries = time.Second, -1
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	var version string
	err = await(ctx, func(ctx context.Context) error {
		info, err := client.Info(ctx, "server").Result()
		version = redisVersion(info)
		return err
	})
	if err != nil {
		return nil, cleanup.Join(fmt.Errorf("redis, %s: %w", kind, err), r.Stop())
	}
	r.About = version + ", " + kind
	return r, nil
}

func redisVersion(info string) string {
	version := "Redis"
	for line := range strings.Lines(info) {
		switch k, v, _ := strings.Cut(strings.TrimSpace(line), ":"); k {
		case "valkey_version":
			return "Valkey " + v
		case "redis_version":
			version = "Redis " + v
		}
	}
	return version
}

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
