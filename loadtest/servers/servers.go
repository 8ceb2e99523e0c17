// Package servers has the servers of the shops that are started: those of the user, or
// real ones in containers, for a race (MySQL, six Redis, of which five are for Redlock, and
// a ZooKeeper) or alone. Containers keep nothing: they are removed at the end, and where the
// process is killed before that, the reaper of testcontainers removes them.
//
// SHOP_TEST_MYSQL_IMAGE, SHOP_TEST_MARIADB_IMAGE, SHOP_TEST_REDIS_IMAGE and
// SHOP_TEST_ZOOKEEPER_IMAGE name other images, as for the tests.
package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"

	"example.com/shop/internal/app"
)

// Docker is the value of --servers that starts containers.
const Docker = "docker"

// Servers are flags: the servers of the shops that are started.
type Servers struct {
	MySQL     string   `name:"mysql" placeholder:"DSN" help:"Let the shops that are started use this MySQL or MariaDB: user:password@tcp(host:3306)/database. It is migrated and gains SKUs and orders: use one for tests."`
	Redis     string   `placeholder:"ADDR" help:"Let the shops that are started use this Redis: host:port or redis:// URL."`
	Redlock   []string `placeholder:"ADDR,..." help:"Let them use these Redis for redlock: an odd number of servers that know nothing of each other. Without it and without --redis, five embedded ones."`
	ZooKeeper string   `name:"zookeeper" placeholder:"ADDR" help:"Let them use this ZooKeeper: host:port, several with commas."`
	From      string   `name:"servers" enum:"embedded,docker" default:"embedded" help:"Where servers come from that are not named: embedded in this process, as far as that can be, or docker, which starts MySQL, six Redis and a ZooKeeper in containers and removes them at the end."`
}

// Check reads the addresses without connecting.
func (s *Servers) Check() error {
	if s.From == Docker && s.Named() {
		return errors.New("--servers docker starts all servers; leave out --mysql, --redis, --redlock and --zookeeper")
	}
	if _, err := app.MySQLAddress(s.MySQL); s.MySQL != "" && err != nil {
		return fmt.Errorf("--%w", err)
	}
	if _, err := app.RedisAddress(s.Redis); s.Redis != "" && err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

// Named reports whether servers of the user's own are to be used.
func (s *Servers) Named() bool {
	return s.MySQL != "" || s.Redis != "" || len(s.Redlock) > 0 || s.ZooKeeper != ""
}

// Stores names the database and the Redis, without user and password. The addresses were
// checked.
func (s *Servers) Stores() (database, redis string) {
	database, redis = "SQLite, embedded", "Redis protocol, embedded"
	if s.MySQL != "" {
		address, _ := app.MySQLAddress(s.MySQL)
		database = "MySQL or MariaDB at " + address
	}
	if s.Redis != "" {
		address, _ := app.RedisAddress(s.Redis)
		redis = "Redis at " + address
	}
	return database, redis
}

// Start starts containers, if they are asked for, all at the same time, and notes their
// addresses. It returns when they answer, or none is left. stop removes them.
func (s *Servers) Start(ctx context.Context, report func(line string)) (stop func() error, err error) {
	if s.From != Docker {
		return func() error { return nil }, nil
	}
	if err := findDocker(ctx); err != nil {
		return nil, err
	}
	kinds := []kind{mysqlKind(), zookeeperKind()}
	for range 1 + redlockNodes {
		kinds = append(kinds, redisKind())
	}
	report(fmt.Sprintf("starting %d containers: MySQL, ZooKeeper and %d Redis", len(kinds), 1+redlockNodes))

	all, errs := make([]*Server, len(kinds)), make([]error, len(kinds))
	var started sync.WaitGroup
	for i, k := range kinds {
		started.Go(func() { all[i], errs[i] = k.start(ctx) })
	}
	started.Wait()
	stop = func() error { //nolint:contextcheck // also when ctx has ended
		var errs []error
		for _, one := range all {
			if one != nil {
				errs = append(errs, one.Close())
			}
		}
		return errors.Join(errs...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(fmt.Errorf("--servers docker: %w", err), stop())
	}
	s.MySQL, s.ZooKeeper, s.Redis = all[0].DSN(), all[1].Addr, all[2].Addr
	for _, r := range all[3:] {
		s.Redlock = append(s.Redlock, r.Addr)
	}
	return stop, nil
}

const (
	startTimeout = 2 * time.Minute  // of a server, without the pull of its image
	stopTimeout  = 30 * time.Second // of the removal of a container
	redlockNodes = 5                // with which Redlock is usually described
	password     = "lab-only"       // of servers on the loopback interface, for minutes
	schema       = "shop"
)

// kind is one sort of server.
type kind struct {
	variable string // environment variable that names another image
	image    string
	port     string
	env      map[string]string
	command  []string // nil for the image's own
	ready    wait.Strategy
}

func mysqlKind() kind { return sqlKind("SHOP_TEST_MYSQL_IMAGE", "mysql:9", "mysqld") }

func mariadbKind() kind { return sqlKind("SHOP_TEST_MARIADB_IMAGE", "mariadb:10.11", "mariadbd") }

// sqlKind is a database whose commits are on disk when they return.
func sqlKind(variable, image, program string) kind {
	_ = mysql.SetLogger(&mysql.NopLogger{}) // a server that is not up yet is no news
	return kind{
		variable: variable, image: image, port: "3306/tcp",
		env: map[string]string{"MYSQL_ROOT_PASSWORD": password, "MYSQL_DATABASE": schema},
		command: []string{
			program, "--skip-name-resolve", "--max-connections=500",
			"--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1",
		},
		ready: wait.ForSQL("3306/tcp", "mysql", func(host string, port network.Port) string {
			return dsn(net.JoinHostPort(host, port.Port()))
		}),
	}
}

func redisKind() kind {
	return kind{
		variable: "SHOP_TEST_REDIS_IMAGE", image: "redis:8", port: "6379/tcp",
		command: []string{"redis-server", "--save", "", "--appendonly", "no"},
		ready:   wait.ForExec([]string{"redis-cli", "ping"}).WithPollInterval(50 * time.Millisecond),
	}
}

func zookeeperKind() kind {
	return kind{
		variable: "SHOP_TEST_ZOOKEEPER_IMAGE", image: "zookeeper:3.9", port: "2181/tcp",
		env: map[string]string{
			"ZOO_MAX_CLIENT_CNXNS":    "0", // no limit
			"ZOO_ADMINSERVER_ENABLED": "false",
			"JVMFLAGS":                "-Xmx256m",
		},
		ready: wait.ForListeningPort("2181/tcp"),
	}
}

func dsn(addr string) string {
	return fmt.Sprintf("root:%s@tcp(%s)/%s", password, addr, schema)
}

// Server is one server in a container.
type Server struct {
	Addr  string // host:port
	Image string

	container *testcontainers.DockerContainer
}

// StartRedis starts one and returns when it answers, or nothing is left of it.
func StartRedis(ctx context.Context) (*Server, error) { return startOne(ctx, redisKind()) }

// StartMySQL is StartRedis of a MySQL.
func StartMySQL(ctx context.Context) (*Server, error) { return startOne(ctx, mysqlKind()) }

// StartMariaDB is StartRedis of a MariaDB.
func StartMariaDB(ctx context.Context) (*Server, error) { return startOne(ctx, mariadbKind()) }

// DSN is where a MySQL or MariaDB has the schema for a shop.
func (s *Server) DSN() string { return dsn(s.Addr) }

// Close removes it.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return testcontainers.TerminateContainer(s.container, testcontainers.StopContext(ctx), testcontainers.StopTimeout(0))
}

func startOne(ctx context.Context, k kind) (*Server, error) {
	if err := findDocker(ctx); err != nil {
		return nil, err
	}
	return k.start(ctx)
}

// findDocker asks whether there is one: looking for its address panics in some
// environments, instead of failing.
func findDocker(ctx context.Context) (err error) {
	log.SetDefault(silent{})
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("no Docker: looking for it: %v", r)
		}
	}()
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return fmt.Errorf("no Docker: %w; install it and see that `docker info` works", err)
	}
	return docker.Close()
}

// silent is a logger for a library that announces each step.
type silent struct{}

func (silent) Printf(string, ...any) {}

// start runs a container and returns when its server answers, or nothing is left of it.
func (k kind) start(ctx context.Context) (*Server, error) {
	s := &Server{Image: cmp.Or(os.Getenv(k.variable), k.image)}
	var err error
	s.container, err = testcontainers.Run(ctx, s.Image,
		testcontainers.WithExposedPorts(k.port),
		testcontainers.WithEnv(k.env),
		testcontainers.WithCmd(k.command...),
		testcontainers.WithWaitStrategyAndDeadline(startTimeout, k.ready),
	)
	if err == nil {
		s.Addr, err = k.address(ctx, s.container)
	}
	if err != nil {
		err = fmt.Errorf("start %s: %w; %s names another image", s.Image, err, k.variable)
		return nil, errors.Join(err, s.Close()) //nolint:contextcheck // also when ctx has ended
	}
	return s, nil
}

// address prefers the container's own, which spares each byte the way through Docker's
// proxy. It can be reached where Docker runs on this Linux.
func (k kind) address(ctx context.Context, c *testcontainers.DockerContainer) (string, error) {
	if ip, err := c.ContainerIP(ctx); err == nil && ip != "" {
		direct := net.JoinHostPort(ip, strings.TrimSuffix(k.port, "/tcp"))
		dialer := net.Dialer{Timeout: time.Second}
		if conn, err := dialer.DialContext(ctx, "tcp", direct); err == nil {
			return direct, conn.Close()
		}
	}
	return c.PortEndpoint(ctx, k.port, "")
}
