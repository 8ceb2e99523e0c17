package servers

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
)

// kind is one sort of server.
type kind struct {
	name     string
	variable string // environment variable that names another image
	image    string
	port     string
	env      map[string]string
	command  []string
	ready    func(ctx context.Context, addr string) error
}

const (
	password = "lab-only" // of servers on the loopback interface, for minutes
	schema   = "shop"
)

func mysqlKind() kind {
	return sqlKind("MySQL", "SHOP_TEST_MYSQL_IMAGE", "mysql:9", "mysqld")
}

func mariadbKind() kind {
	return sqlKind("MariaDB", "SHOP_TEST_MARIADB_IMAGE", "mariadb:10.11", "mariadbd")
}

// sqlKind is a database whose commits are on disk when they return.
func sqlKind(name, variable, image, program string) kind {
	return kind{
		name: name, variable: variable, image: image, port: "3306/tcp",
		env: map[string]string{"MYSQL_ROOT_PASSWORD": password, "MYSQL_DATABASE": schema},
		command: []string{
			program, "--skip-name-resolve", "--max-connections=500",
			"--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1",
		},
		ready: mysqlReady,
	}
}

func redisKind() kind {
	return kind{
		name: "Redis", variable: "SHOP_TEST_REDIS_IMAGE", image: "redis:8", port: "6379/tcp",
		command: []string{"redis-server", "--save", "", "--appendonly", "no"},
		ready:   redisReady,
	}
}

func zookeeperKind() kind {
	return kind{
		name: "ZooKeeper", variable: "SHOP_TEST_ZOOKEEPER_IMAGE", image: "zookeeper:3.9", port: "2181/tcp",
		env: map[string]string{
			"ZOO_MAX_CLIENT_CNXNS":       "0", // no limit
			"ZOO_4LW_COMMANDS_WHITELIST": "srvr",
			"ZOO_ADMINSERVER_ENABLED":    "false",
			"JVMFLAGS":                   "-Xmx256m",
		},
		ready: zookeeperReady,
	}
}

func (k kind) imageName() string { return cmp.Or(os.Getenv(k.variable), k.image) }

func dsn(addr string) string {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = "root", password, "tcp", addr, schema
	return c.FormatDSN()
}

func mysqlReady(ctx context.Context, addr string) error {
	c, err := mysql.ParseDSN(dsn(addr))
	if err != nil {
		return err
	}
	c.Logger = &mysql.NopLogger{} // a server that is not up yet is no news
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

func redisReady(ctx context.Context, addr string) error {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	return client.Ping(ctx).Err()
}

// zookeeperReady sends the four-letter word srvr: a server that listens but does
// not serve answers without a mode.
func zookeeperReady(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && !strings.Contains(string(answer), "\nMode: ") {
		err = errors.New("it does not serve yet")
	}
	return err
}
