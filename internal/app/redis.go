package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"example.com/shop/internal/order"
)

// RedisAddress returns the host:port of an address or URL, without user and password; of several servers with commas.
func RedisAddress(address string) (string, error) {
	servers, err := readRedis(address)
	if err != nil {
		return "", err
	}
	return servers.String(), nil
}

// redisServers are what --redis names: one server, the Sentinels of one that may be replaced, or some nodes of a Cluster.
type redisServers struct {
	addrs     []string
	tls       **tls.Config // as the URL has it; the name in the certificate is that of the host dialed
	passwords []string
	open      func(retries bool) redis.UniversalClient
}

func (r *redisServers) String() string { return strings.Join(r.addrs, ",") }

// readRedis reads host:port or one of go-redis' URLs. With master_name in its query it is of Sentinels, with further
// nodes (addr) or cluster=true of a Cluster. The errors do not quote a URL, not even one without a scheme, which may
// contain a password.
func readRedis(address string) (*redisServers, error) {
	errForm := errors.New("redis: want host:port or redis://user:password@host:6379/0; of Sentinels redis://host:26379?master_name=NAME&addr=HOST:PORT; of a Cluster redis://host:6379?addr=HOST:PORT, or cluster=true instead of further nodes")
	if !strings.Contains(address, "://") {
		if strings.Contains(address, "@") {
			return nil, errForm
		}
		return checkRedis(oneRedis(&redis.Options{Addr: address}))
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errForm
	}
	query := u.Query()
	cluster := query.Get("cluster")
	query.Del("cluster") // a word of the shop's own
	u.RawQuery = query.Encode()
	switch {
	case cluster != "" && cluster != "true":
		return nil, errors.New("redis: cluster: want true, or leave it out")
	case query.Has("master_name"):
		options, err := redis.ParseFailoverURL(u.String())
		if err != nil || cluster != "" || options.MasterName == "" {
			return nil, errForm
		}
		if options.ReplicaOnly || options.RouteByLatency || options.RouteRandomly {
			return nil, errors.New("redis: replica_only, route_by_latency, route_randomly: locks are read and written on the master: leave them out")
		}
		return checkRedis(sentinelRedis(options))
	case cluster != "" || query.Has("addr"):
		options, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, errForm
		}
		return checkRedis(clusterRedis(options))
	}
	options, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, errForm
	}
	return checkRedis(oneRedis(options))
}

func oneRedis(o *redis.Options) *redisServers {
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true                                                                       // Redis 7.0 has no right for CLIENT SETINFO alone
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // only cloud services send them
	return &redisServers{
		addrs: []string{o.Addr}, tls: &o.TLSConfig, passwords: []string{o.Password},
		open: func(retries bool) redis.UniversalClient {
			o := *o
			if !retries {
				o.MaxRetries, o.DialerRetries = -1, 1
			}
			return redis.NewClient(&o)
		},
	}
}

func sentinelRedis(o *redis.FailoverOptions) *redisServers {
	o.ContextTimeoutEnabled, o.DisableIdentity = true, true
	return &redisServers{
		addrs: o.SentinelAddrs, tls: &o.TLSConfig, passwords: []string{o.Password, o.SentinelPassword},
		open: func(retries bool) redis.UniversalClient {
			o := *o
			if !retries {
				o.MaxRetries, o.DialerRetries = -1, 1
			}
			return redis.NewFailoverClient(&o)
		},
	}
}

func clusterRedis(o *redis.ClusterOptions) *redisServers {
	o.ContextTimeoutEnabled, o.DisableIdentity = true, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // only cloud services send them
	return &redisServers{
		addrs: o.Addrs, tls: &o.TLSConfig, passwords: []string{o.Password},
		open: func(retries bool) redis.UniversalClient {
			o := *o
			if !retries {
				o.MaxRetries, o.DialerRetries = -1, 1
			}
			return redis.NewClusterClient(&o)
		},
	}
}

// checkRedis is the rules for all forms.
func checkRedis(r *redisServers) (*redisServers, error) {
	for _, addr := range r.addrs {
		if strings.Contains(addr, "@") { // of addr=secret@host:port
			return nil, errors.New("redis: want HOST:PORT in addr; user and password are before the first host")
		}
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
			return nil, fmt.Errorf("redis: %q: want host:port or a redis:// URL", addr)
		}
	}
	if config := *r.tls; config != nil {
		if config.InsecureSkipVerify {
			return nil, errors.New("redis: skip_verify trusts any server: leave it out; want --redis-ca with the file of the CA that signed the server's certificate")
		}
		config.ServerName = "" // go-redis would expect the first host's name of all servers
	}
	return r, nil
}

// openRedis returns a client of a Redis that has answered. It waits for the answer until ctx ends.
func (c *components) openRedis(ctx context.Context, s Settings, address string) (redis.UniversalClient, error) {
	servers, err := readRedis(address)
	if err != nil {
		return nil, err
	}
	config, err := s.redisTLS().config()
	if err != nil {
		return nil, err
	}
	*servers.tls = cmp.Or(config, *servers.tls)
	defer s.Announce("redis at " + servers.String())()
	if err := awaitRedis(ctx, servers.open(false)); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, context.Cause(ctx)
		}
		what := "does not answer"
		if permanent(err) {
			what = "refuses"
		}
		return nil, fmt.Errorf("redis at %s %s: %w; check that it runs, that --redis (SHOP_REDIS) and a master_name or number of a database in it are right, its user, password and rights, and TLS (--redis-ca, SHOP_REDIS_CA)", servers, what, err)
	}
	client := servers.open(true)
	c.onClose("redis", client.Close)
	if hook := s.Hooks.Redis; hook != nil {
		client.AddHook(hook)
	}
	return client, nil
}

// awaitRedis pings until the server answers or ctx ends, and closes the client. That does not retry, so that the error
// is the server's and not a timeout of retries.
func awaitRedis(ctx context.Context, client redis.UniversalClient) (err error) {
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
		if permanent(err) {
			return err
		}
		if order.Pause(ctx, 100*time.Millisecond) != nil {
			return last
		}
	}
}

// permanent reports whether waiting cannot mend an error: one of TLS, or the server's answer, such as to a wrong password
// or number of a database, unless the answer is temporary.
func permanent(err error) bool {
	if !errors.As(err, new(redis.Error)) {
		return refusedTLS(err)
	}
	if errors.Is(err, redis.Nil) { // Sentinels know no master of this name
		return !errors.As(err, new(net.Error)) // a Sentinel that does not answer may know it
	}
	return !redis.IsLoadingError(err) && !redis.IsMasterDownError(err) && !redis.IsClusterDownError(err) && !redis.IsTryAgainError(err) &&
		!redis.IsMaxClientsError(err) && !redis.IsOOMError(err) && !redis.IsNoReplicasError(err) &&
		!redis.HasErrorPrefix(err, "BUSY") && !redis.HasErrorPrefix(err, "MISCONF")
}
