// Package servers starts real servers in containers: those of a race (MySQL, six
// Redis, of which five are for Redlock, and a ZooKeeper), or one alone. They keep
// nothing: Close removes them, and where the process is killed before that, the reaper
// of testcontainers does.
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

	"example.com/shop/loadtest/cleanup"
)

const (
	startTimeout = 2 * time.Minute  // of a server, without the pull of its image
	stopTimeout  = 30 * time.Second // of the removal of a container
	redlockNodes = 5                // with which Redlock is usually described
	password     = "lab-only"       // of servers on the loopback interface, for minutes
	schema       = "shop"
)

// kind is one sort of server.
type kind struct {
	name     string
	variable string // environment variable that names another image
	image    string
	port     string
	env      map[string]string
	command  []string
	ready    wait.Strategy
}

func mysqlKind() kind {
	return sqlKind("MySQL", "SHOP_TEST_MYSQL_IMAGE", "mysql:9", "mysqld")
}

func mariadbKind() kind {
	return sqlKind("MariaDB", "SHOP_TEST_MARIADB_IMAGE", "mariadb:10.11", "mariadbd")
}

// sqlKind is a database whose commits are on disk when they return.
func sqlKind(name, variable, image, program string) kind {
	_ = mysql.SetLogger(&mysql.NopLogger{}) // a server that is not up yet is no news
	return kind{
		name: name, variable: variable, image: image, port: "3306/tcp",
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
		name: "Redis", variable: "SHOP_TEST_REDIS_IMAGE", image: "redis:8", port: "6379/tcp",
		command: []string{"redis-server", "--save", "", "--appendonly", "no"},
		ready:   wait.ForExec([]string{"redis-cli", "ping"}).WithPollInterval(50 * time.Millisecond),
	}
}

func zookeeperKind() kind {
	return kind{
		name: "ZooKeeper", variable: "SHOP_TEST_ZOOKEEPER_IMAGE", image: "zookeeper:3.9", port: "2181/tcp",
		env: map[string]string{
			"ZOO_MAX_CLIENT_CNXNS":    "0", // no limit
			"ZOO_ADMINSERVER_ENABLED": "false",
			"JVMFLAGS":                "-Xmx256m",
		},
		ready: wait.ForListeningPort("2181/tcp"),
	}
}

func dsn(addr string) string {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = "root", password, "tcp", addr, schema
	return c.FormatDSN()
}

// Server is one server in a container.
type Server struct {
	Addr  string // host:port
	Image string

	container testcontainers.Container
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
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithExposedPorts(k.port),
		testcontainers.WithEnv(k.env),
		testcontainers.WithLogger(silent{}),
		testcontainers.WithWaitStrategyAndDeadline(startTimeout, k.ready),
	}
	if k.command != nil {
		options = append(options, testcontainers.WithCmd(k.command...))
	}
	s := &Server{Image: cmp.Or(os.Getenv(k.variable), k.image)}
	container, err := testcontainers.Run(ctx, s.Image, options...)
	if container != nil {
		s.container = container
	}
	if err == nil {
		s.Addr, err = k.address(ctx, container)
	}
	if err != nil {
		err = fmt.Errorf("start %s from %s: %w; %s names another image", k.name, s.Image, err, k.variable)
		if s.container != nil {
			err = cleanup.Join(err, s.Close()) //nolint:contextcheck // also when ctx has ended
		}
		return nil, err
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

// Servers are those of a race.
type Servers struct {
	MySQL     string // DSN
	Redis     string // host:port, as the others
	Redlock   []string
	ZooKeeper string

	all []*Server
}

// Start starts all of them at the same time, and returns when they answer, or none is
// left. It reports its progress line by line.
func Start(ctx context.Context, report func(line string)) (*Servers, error) {
	if err := findDocker(ctx); err != nil {
		return nil, err
	}
	kinds := []kind{mysqlKind(), zookeeperKind()}
	for range 1 + redlockNodes {
		kinds = append(kinds, redisKind())
	}
	report(fmt.Sprintf("starting %d containers: MySQL, ZooKeeper and %d Redis", len(kinds), 1+redlockNodes))

	began, all, errs := time.Now(), make([]*Server, len(kinds)), make([]error, len(kinds))
	var done sync.WaitGroup
	var reporting sync.Mutex
	for i, k := range kinds {
		done.Go(func() {
			if all[i], errs[i] = k.start(ctx); errs[i] == nil {
				reporting.Lock()
				defer reporting.Unlock()
				report(fmt.Sprintf("%s answers after %.1f s", k.name, time.Since(began).Seconds()))
			}
		})
	}
	done.Wait()
	s := &Servers{all: all}
	if err := errors.Join(errs...); err != nil {
		return nil, cleanup.Join(err, s.Close()) //nolint:contextcheck // also when ctx has ended
	}
	s.MySQL, s.ZooKeeper, s.Redis = all[0].DSN(), all[1].Addr, all[2].Addr
	for _, r := range all[3:] {
		s.Redlock = append(s.Redlock, r.Addr)
	}
	return s, nil
}

// Close removes them all.
func (s *Servers) Close() error {
	errs := make([]error, len(s.all))
	var done sync.WaitGroup
	for i, one := range s.all {
		if one != nil {
			done.Go(func() { errs[i] = one.Close() })
		}
	}
	done.Wait()
	s.all = nil
	return errors.Join(errs...)
}
