package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"example.com/shop/internal/order"
	"example.com/shop/internal/store"
)

// Step is a step of a start that asks the database. After an error that may be temporary, it is repeated.
type Step func(context.Context, *store.Store) error

// OpenDatabase waits until the database has answered and all steps are done, or ctx or s.StartTimeout
// ends. Wrong settings are a UsageError.
func OpenDatabase(ctx context.Context, s DatabaseSettings, steps ...Step) (*store.Store, error) {
	if err := s.checkDatabase(); err != nil {
		return nil, UsageError{Err: err}
	}
	return openStore(ctx, s, store.Options{}, steps...)
}

func openStore(ctx context.Context, s DatabaseSettings, o store.Options, steps ...Step) (db *store.Store, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.StartTimeout)
	defer cancel()
	if s.MySQL == "" {
		db, err = store.SQLite(ctx, DatabaseFile(s.Data), o)
	} else {
		db, err = openMySQL(ctx, s, o)
	}
	if err != nil {
		return nil, err
	}
	for _, step := range steps {
		if err := db.Await(ctx, func(ctx context.Context) error { return step(ctx, db) }); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

func openMySQL(ctx context.Context, s DatabaseSettings, o store.Options) (db *store.Store, err error) {
	address, _ := MySQLAddress(s.MySQL) // the settings are valid
	if o.TLS, err = s.MySQLTLS.config("mysql"); err != nil {
		return nil, err
	}
	defer s.Announce("mysql at " + address)()
	if db, err = store.MySQL(ctx, s.MySQL, o); err != nil {
		return nil, fmt.Errorf("%w (--mysql, SHOP_MYSQL; TLS: --mysql-ca, SHOP_MYSQL_CA)", err)
	}
	return db, nil
}

// Prepare migrates a SQLite file. It refuses a database server whose schema is old or not the shop's: other instances
// may use that server, so that the operator has to run `shop migrate`.
func Prepare(ctx context.Context, db *store.Store) error {
	if !db.IsSQLite() {
		return UpToDate(ctx, db)
	}
	if _, err := db.Migrate(ctx); err != nil {
		return fmt.Errorf("%s: %w", db.Name(), err)
	}
	return nil
}

// UpToDate returns an error if the database's schema is old or not the shop's.
func UpToDate(ctx context.Context, db *store.Store) error {
	pending, err := db.Pending(ctx)
	if err == nil && pending {
		err = errors.New("the schema is not up to date: run `shop migrate` first")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", db.Name(), err)
	}
	return nil
}

// MySQLAddress returns the host:port/database of a DSN, without user and password. Commas separate several hosts.
func MySQLAddress(dsn string) (string, error) {
	configs, err := store.ReadDSN(dsn)
	if err != nil {
		return "", fmt.Errorf("mysql: %w", err)
	}
	var hosts []string
	for _, c := range configs {
		hosts = append(hosts, c.Addr)
	}
	return strings.Join(hosts, ",") + "/" + configs[0].DBName, nil
}

// Announce logs that the shop waits for a server, unless over is called within 200 ms.
func (s DatabaseSettings) Announce(server string) (over func()) {
	t := time.AfterFunc(200*time.Millisecond, func() {
		s.log().Info("waiting for "+server, "at_most", s.StartTimeout)
	})
	return func() { t.Stop() }
}

// keepFolder refuses a second shop on a folder if the locks and rate limits of one of the two are in its process. The
// folder is free again once the first shop has called release or its process has ended.
func keepFolder(data string, shared bool) (release func() error, err error) {
	file := flock.New(filepath.Join(data, "serving"), flock.SetPermissions(0o600))
	try := file.TryLock
	if shared {
		try = file.TryRLock
	}
	switch ok, err := try(); {
	case err != nil:
		return nil, fmt.Errorf("data folder: %w", err)
	case !ok:
		return nil, fmt.Errorf("another shop serves %s, and one of the two has its locks in its process: "+
			"give both the same --redis, or stop the other shop", data)
	}
	return file.Close, nil
}

// RedisAddress returns the host:port of an address or URL, without user and password. Commas separate several servers.
func RedisAddress(address string) (string, error) {
	servers, err := readRedis(address)
	if err != nil {
		return "", err
	}
	return servers.String(), nil
}

// redisServers are the servers that --redis names: one Redis, Sentinels, or nodes of a Cluster.
type redisServers struct {
	addrs     []string
	tls       **tls.Config // of the client that open returns
	passwords []string
	open      func() redis.UniversalClient
}

func (r *redisServers) String() string { return strings.Join(r.addrs, ",") }

// readRedis reads host:port or a URL of go-redis. A URL with master_name in its query names Sentinels;
// a URL with further nodes (addr) or cluster=true names a Cluster. The errors never quote the address,
// which may contain a password.
func readRedis(address string) (r *redisServers, err error) {
	errForm := errors.New("redis: want host:port or redis://user:password@host:6379/0; " +
		"for Sentinels redis://host:26379?master_name=NAME&addr=HOST:PORT; for a Cluster " +
		"redis://host:6379?addr=HOST:PORT, or cluster=true instead of further nodes")
	if !strings.Contains(address, "://") {
		if _, _, err := net.SplitHostPort(address); err != nil || strings.ContainsAny(address, "@/?") {
			return nil, errForm
		}
		address = "redis://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errForm
	}
	query := u.Query()
	cluster := query.Get("cluster")
	query.Del("cluster") // go-redis does not know it
	u.RawQuery = query.Encode()
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // only cloud services send them
	switch {
	case cluster != "" && cluster != "true":
		return nil, errors.New("redis: cluster: want true, or leave it out")
	case query.Has("master_name"):
		o, err := redis.ParseFailoverURL(u.String())
		if err != nil || cluster != "" || o.MasterName == "" {
			return nil, errForm
		}
		if o.ReplicaOnly || o.RouteByLatency || o.RouteRandomly {
			return nil, errors.New("redis: replica_only, route_by_latency, route_randomly: leave them out: locks are read and written on the master")
		}
		o.ContextTimeoutEnabled, o.DisableIdentity = true, true // Redis 7.0 cannot permit CLIENT SETINFO alone
		r = &redisServers{o.SentinelAddrs, &o.TLSConfig, []string{o.Password, o.SentinelPassword},
			func() redis.UniversalClient { return redis.NewFailoverClient(o) }}
	case cluster != "" || query.Has("addr"):
		o, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, errForm
		}
		o.ContextTimeoutEnabled, o.DisableIdentity, o.MaintNotificationsConfig = true, true, quiet
		r = &redisServers{o.Addrs, &o.TLSConfig, []string{o.Password},
			func() redis.UniversalClient { return redis.NewClusterClient(o) }}
	default:
		o, err := redis.ParseURL(u.String())
		if err != nil {
			return nil, errForm
		}
		o.ContextTimeoutEnabled, o.DisableIdentity, o.MaintNotificationsConfig = true, true, quiet
		r = &redisServers{[]string{o.Addr}, &o.TLSConfig, []string{o.Password},
			func() redis.UniversalClient { return redis.NewClient(o) }}
	}
	return r, r.check()
}

// check applies the rules for all three forms.
func (r *redisServers) check() error {
	for _, addr := range r.addrs {
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" || strings.Contains(addr, "@") { // addr=secret@host:port
			return errors.New("redis: want HOST:PORT in addr; user and password belong before the first host")
		}
	}
	if config := *r.tls; config != nil {
		if config.InsecureSkipVerify {
			return errors.New("redis: skip_verify trusts any server: leave it out, and name the CA of the server's certificate by --redis-ca")
		}
		config.ServerName = "" // or go-redis expects the first host's name in all certificates
	}
	return nil
}

// OpenRedis returns a client of a Redis that has answered. It waits for the answer until ctx ends.
func (p *Parts) OpenRedis(ctx context.Context, address string) (redis.UniversalClient, error) {
	servers, err := readRedis(address)
	if err != nil {
		return nil, err
	}
	config, err := p.RedisTLS.config("redis")
	if err != nil {
		return nil, err
	}
	*servers.tls = cmp.Or(config, *servers.tls)
	defer p.Announce("redis at " + servers.String())()
	client := servers.open()
	if err := awaitRedis(ctx, client); err != nil {
		_ = client.Close()
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("redis at %s: %w; check that it runs, the address with its master_name or database "+
			"number (--redis, SHOP_REDIS), the user, password and permissions, and TLS (--redis-ca, SHOP_REDIS_CA)", servers, err)
	}
	p.OnClose("redis", client.Close)
	if hook := p.hooks.Redis; hook != nil {
		client.AddHook(hook)
	}
	return client, nil
}

// awaitRedis pings until the server answers or ctx ends. It returns the error of the last ping that ctx did not end.
func awaitRedis(ctx context.Context, client redis.UniversalClient) error {
	var last error
	for {
		err := client.Ping(ctx).Err()
		if err == nil || permanent(err) {
			return err
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if order.Pause(ctx, 100*time.Millisecond) != nil {
			return last
		}
	}
}

// permanent reports whether waiting cannot help: after an error of TLS, or an answer such as to a wrong password or
// database number, unless the answer is temporary.
func permanent(err error) bool {
	if !errors.As(err, new(redis.Error)) {
		return refusedTLS(err)
	}
	if errors.Is(err, redis.Nil) { // the Sentinels that answer know no master of this name
		return !errors.As(err, new(net.Error)) // a Sentinel that does not answer may know the name
	}
	return !redis.IsLoadingError(err) && !redis.IsMasterDownError(err) && !redis.IsClusterDownError(err) && !redis.IsTryAgainError(err) &&
		!redis.IsMaxClientsError(err) && !redis.IsOOMError(err) && !redis.IsNoReplicasError(err) &&
		!redis.HasErrorPrefix(err, "BUSY") && !redis.HasErrorPrefix(err, "MISCONF")
}

// config reads the files, and returns nil if none is named. The server's certificate and host name are always verified.
// Errors name the file and its flag, which begins with prefix, and never show a key.
func (f TLSFiles) config(prefix string) (*tls.Config, error) {
	if f == (TLSFiles{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("%s-ca: %w", prefix, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s-ca: %s: want certificates in PEM, -----BEGIN CERTIFICATE-----", prefix, f.CA)
		}
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, fmt.Errorf("%s-cert, %[1]s-key: want both files or none", prefix)
	}
	if f.Cert != "" {
		own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("%[1]s-cert %[2]s, %[1]s-key %[3]s: %[4]w", prefix, f.Cert, f.Key, err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

// refusedTLS reports a permanent error of TLS: the server does not speak it, has a bad certificate, or
// ended the handshake.
func refusedTLS(err error) bool {
	var remote *net.OpError // a server's alert after the handshake of TLS 1.3
	return errors.As(err, new(tls.RecordHeaderError)) || errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, new(tls.AlertError)) || errors.As(err, &remote) && remote.Op == "remote error"
}
