package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"example.com/shop/internal/order"
)

// RedisAddress returns the host:port of an address or URL, without user and password.
func RedisAddress(address string) (string, error) {
	options, err := redisOptions(address)
	if err != nil {
		return "", err
	}
	return options.Addr, nil
}

// redisOptions parses host:port or a URL. Its errors do not quote a URL, not even one without a scheme, which may
// contain a password.
func redisOptions(address string) (*redis.Options, error) {
	errForm := errors.New("redis: want host:port or redis://user:password@host:6379/0")
	options := &redis.Options{Addr: address}
	switch {
	case strings.Contains(address, "://"):
		parsed, err := redis.ParseURL(address)
		if err != nil {
			return nil, errForm
		}
		options = parsed
	case strings.Contains(address, "@"):
		return nil, errForm
	}
	if _, port, err := net.SplitHostPort(options.Addr); err != nil || port == "" {
		return nil, fmt.Errorf("redis: %q: want host:port or a redis:// URL", options.Addr)
	}
	if options.TLSConfig != nil && options.TLSConfig.InsecureSkipVerify {
		return nil, errors.New("redis: skip_verify trusts any server: leave it out; want --redis-ca with the file of the CA that signed the server's certificate")
	}
	options.ContextTimeoutEnabled = true
	// Maintenance notifications exist only in cloud services.
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return options, nil
}

// openClient returns a client of a Redis that has answered. In teaching mode its commands are recorded. It waits for
// the answer until ctx ends.
func (c *components) openClient(ctx context.Context, s Settings, address string) (redis.UniversalClient, error) {
	options, err := redisOptions(address)
	if err != nil {
		return nil, err
	}
	config, err := s.redisTLS().config()
	if err != nil {
		return nil, err
	}
	options.TLSConfig = cmp.Or(config, options.TLSConfig) // go-redis adds the host name
	defer s.announce("redis at " + options.Addr)()
	if err := awaitRedis(ctx, *options); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("redis at %s does not answer: %w; check that it runs, that --redis (SHOP_REDIS) is right, its password, and TLS (--redis-ca, SHOP_REDIS_CA)", options.Addr, err)
	}
	client := redis.NewClient(options)
	c.onClose("redis", client.Close)
	if c.lab != nil {
		client.AddHook(c.lab.recorder.Redis(scriptName))
	}
	return client, nil
}

// awaitRedis pings until the server answers or ctx ends. Its client does not retry, so that the error is the server's
// and not a timeout of retries.
func awaitRedis(ctx context.Context, options redis.Options) (err error) {
	options.MaxRetries, options.DialerRetries = -1, 1
	client := redis.NewClient(&options)
	defer func() { err = errors.Join(err, client.Close()) }()
	var last error
	for {
		err := client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		// A wrong password or certificate is permanent.
		if refusedTLS(err) || redis.IsAuthError(err) || redis.IsPermissionError(err) || strings.HasPrefix(err.Error(), "ERR AUTH") {
			return last
		}
		if order.Pause(ctx, 100*time.Millisecond) != nil {
			return last
		}
	}
}

// redisVersion returns, for example, "Redis 8.0.2" or "Valkey 9.0.0". A server may forbid INFO, and the embedded one
// has no version.
func redisVersion(ctx context.Context, client redis.UniversalClient) string {
	info, _ := client.Info(ctx, "server").Result()
	version := "Redis protocol, version not told"
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "valkey_version":
			return "Valkey " + value // it also has a redis_version
		case "redis_version":
			version = "Redis " + value
		}
	}
	return version
}

// StartEmbedded starts n independent servers of the Redis protocol inside this process, each on a free port of the
// loopback interface: one for Settings.Redis, usually five for Settings.Redlock. Shut down the shops before calling
// stop.
func StartEmbedded(n int) (addrs []string, stop func() error, err error) {
	var servers []*miniredis.Miniredis
	stop = func() error {
		for _, server := range servers {
			server.Close()
		}
		return nil
	}
	for range n {
		server := miniredis.NewMiniRedis()
		if err := server.StartAddr("127.0.0.1:0"); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("start the Redis-protocol server: %w", err), stop())
		}
		server.ClockTTL(true) // keys expire by the clock
		servers = append(servers, server)
		addrs = append(addrs, server.Addr())
	}
	return addrs, stop, nil
}
