package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"example.com/shop/internal/tlsclient"
)

// redisOptions reads host:port or a URL. Its errors do not repeat a URL, nor one
// whose scheme was forgotten: it may hold a password.
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
	// Notices of a cloud service's upgrades, which plain servers do not know.
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return options, nil
}

// locks tells where locks and rate limits are, without a password.
func (s Settings) locks() string {
	if s.RedisEmbedded {
		return "process"
	}
	address, err := RedisAddress(s.Redis)
	if err != nil {
		return "redis"
	}
	return "redis at " + address
}

// openRedis returns a client of a Redis that has answered. It asks until ctx
// ends.
func openRedis(ctx context.Context, s Settings) (redis.UniversalClient, error) {
	options, err := redisOptions(s.Redis)
	if err != nil {
		return nil, err
	}
	if err := redisTLS(s, options); err != nil {
		return nil, err
	}
	defer s.announce("redis at " + options.Addr)()
	if err := awaitRedis(ctx, *options); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, context.Cause(ctx)
		}
		if refused := tlsclient.Refusal(err); refused != nil {
			return nil, fmt.Errorf("redis at %s: %w (--redis, SHOP_REDIS%s)", options.Addr, refused, whichCA(refused, "--redis-ca, SHOP_REDIS_CA"))
		}
		return nil, fmt.Errorf("redis at %s does not answer: %w; check that it runs, that --redis (SHOP_REDIS) is right, and its password", options.Addr, err)
	}
	return redis.NewClient(options), nil
}

// awaitRedis asks with a client that does not retry by itself, so that an error
// is the server's word and not that the time was over.
func awaitRedis(ctx context.Context, options redis.Options) (err error) {
	options.MaxRetries, options.DialerRetries = -1, 1
	client := redis.NewClient(&options)
	defer func() { err = errors.Join(err, client.Close()) }()
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	var last error
	for {
		if options.TLSConfig != nil && plaintext(ctx, options.Addr) {
			return tlsclient.ErrPlaintext
		}
		err := client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if hopeless(err) {
			return last
		}
		select {
		case <-ctx.Done():
			return last
		case <-retry.C:
		}
	}
}

// hopeless reports whether waiting cannot help: a wrong password stays wrong, and
// so does a certificate.
func hopeless(err error) bool {
	return tlsclient.Refusal(err) != nil || redis.IsAuthError(err) || redis.IsPermissionError(err) ||
		strings.HasPrefix(err.Error(), "ERR AUTH") // a password for a server that has none
}
