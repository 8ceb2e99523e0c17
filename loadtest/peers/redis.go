package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// errNoRedis means that this machine has neither program.
var errNoRedis = errors.New("neither redis-server nor docker is on PATH")

// startRedis starts a Redis that forgets everything when stop is called: a redis-server process or, where that program
// is not on PATH, a container of $SHOP_TEST_REDIS_IMAGE.
func startRedis(ctx context.Context) (addr, kind string, stop func(), err error) {
	port := strconv.Itoa(10_000 + rand.IntN(2_000)) // below those that Linux gives to programs that name none
	addr = "127.0.0.1:" + port
	var args []string
	program, err := exec.LookPath("redis-server")
	if err == nil {
		kind, args = "a process of "+program, []string{"--bind", "127.0.0.1", "--port", port}
	} else {
		if program, err = exec.LookPath("docker"); err != nil {
			return "", "", nil, errNoRedis
		}
		image := cmp.Or(os.Getenv("SHOP_TEST_REDIS_IMAGE"), "redis:8")
		kind, args = "a container of "+image, []string{"run", "--rm", "--publish", "127.0.0.1:" + port + ":6379", image, "redis-server"}
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(life, program, append(args, "--save", "", "--appendonly", "no")...) //nolint:gosec // from PATH
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }                       // docker hands it on
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		cancel()
		return "", "", nil, err
	}
	stop = func() {
		cancel()
		_ = cmd.Wait() // it ended by a signal
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err = redisVersion(ctx, addr); err == nil {
			return addr, kind, stop, nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			stop()
			return "", "", nil, fmt.Errorf("redis as %s does not answer: %w", kind, err)
		}
	}
}

// redisVersion returns what the server calls itself.
func redisVersion(ctx context.Context, addr string) (string, error) {
	info, err := redisInfo(ctx, addr, "Server")
	if valkey := info["valkey_version"]; valkey != "" {
		return "Valkey " + valkey, err
	}
	return "Redis " + info["redis_version"], err
}

// redisCommands returns how many the server has processed.
func redisCommands(ctx context.Context, addr string) (float64, error) {
	info, err := redisInfo(ctx, addr, "Stats")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(info["total_commands_processed"], 64)
}

// redisInfo returns a section of what the server says of itself.
func redisInfo(ctx context.Context, addr, section string) (map[string]string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr) // go-redis would log that it is refused
	if err != nil {
		return nil, err
	}
	_ = conn.Close()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: time.Minute})
	defer func() { _ = client.Close() }()
	info, err := client.InfoMap(ctx, section).Result()
	return info[section], err
}
