package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// errNoRedis means that this machine does not have the program.
var errNoRedis = errors.New("redis-server is not on PATH: give a Redis with -redis")

// startRedis starts a redis-server that forgets everything when stop is called.
func startRedis(ctx context.Context) (addr, kind string, stop func(), err error) {
	port := strconv.Itoa(10_000 + rand.IntN(2_000)) // below those that Linux gives to programs that name none
	addr = "127.0.0.1:" + port
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return "", "", nil, errNoRedis
	}
	kind = "a process of " + program
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(life, program, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
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
