package testserver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	dataDir      = "/var/lib/mysql"
	askLimit     = 2 * time.Second
	rootPassword = "test-only"
	collation    = "utf8mb4_bin" // distinguishes strings that differ in any byte; both servers have it
)

// MySQL returns the DSN of an empty schema on a MySQL that the tests of a package share. The schema is dropped when t ends.
// Times are parsed as UTC; strings compare by their bytes. The user is root.
func MySQL(t testing.TB) (dsn string) { return share(t, mysqlKind()).DSN(t) }

// MariaDB is like MySQL, on a MariaDB.
func MariaDB(t testing.TB) (dsn string) { return share(t, mariadbKind()).DSN(t) }

// StartMariaDB starts a MariaDB for the faults of this test only. It is durable: after a kill, it recovers each commit.
func StartMariaDB(t testing.TB) *Server { return Start(t, mariadbKind().durable().start) }

// StartMySQL is like StartMariaDB, for a MySQL.
func StartMySQL(t testing.TB) *Server { return Start(t, mysqlKind().durable().start) }

// StartMySQLTLS starts a MySQL for this test only, with TLS by these PEM texts. It also accepts clients without TLS.
func StartMySQLTLS(t testing.TB, ca, cert, key []byte) *Server {
	return mysqlKind().startTLS(t, ca, cert, key)
}

// StartMariaDBTLS is like StartMySQLTLS, for a MariaDB.
func StartMariaDBTLS(t testing.TB, ca, cert, key []byte) *Server {
	return mariadbKind().startTLS(t, ca, cert, key)
}

func (k kind) startTLS(t testing.TB, ca, cert, key []byte) *Server {
	t.Helper()
	k.files = map[string][]byte{"/ca.pem": ca, "/cert.pem": cert, "/key.pem": key}
	k.command = append(k.command, "--ssl-ca=/ca.pem", "--ssl-cert=/cert.pem", "--ssl-key=/key.pem")
	return Start(t, k.start)
}

func mysqlKind() kind {
	return sqlKind("MySQL", "SHOP_TEST_MYSQL_IMAGE", "mysql:9", "mysqld", "--mysqlx=OFF")
}

func mariadbKind() kind {
	return sqlKind("MariaDB", "SHOP_TEST_MARIADB_IMAGE", "mariadb:10.11", "mariadbd")
}

// sqlKind returns the kind of a server whose commits cost no disk write.
func sqlKind(name, variable, image string, command ...string) kind {
	command = slices.Clip(append(command, "--skip-name-resolve", "--max-connections=1000"))
	return kind{
		name:     name,
		variable: variable,
		image:    image,
		port:     3306,
		env:      map[string]string{"MYSQL_ROOT_PASSWORD": rootPassword},
		command:  append(command, "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF"),
		safe:     append(command, "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1", "--innodb-buffer-pool-size=1G"),
		memory:   map[string]string{dataDir: "rw"},
		ready: func(ctx context.Context, addr string) error {
			s := new(Server)
			s.addr.Store(addr)
			return s.Query(ctx, "SELECT 1", new(int))
		},
	}
}

// OpenMySQLSmallDisk is like OpenMySQL, on a disk of 400 MB, for FillDisk. The server has no binary log, whose writes
// would not fail but wait until long after FreeDisk. A mysqld that aborts because it cannot roll back is restarted.
func OpenMySQLSmallDisk(ctx context.Context) (*Server, error) {
	k := mysqlKind().durable()
	k.command = append([]string{"sh", "-c", `until docker-entrypoint.sh "$@"; do sleep 0.1; done`, "sh"}, append(k.command, "--skip-log-bin")...)
	k.memory = map[string]string{dataDir: "rw,size=400m"}
	return open(ctx, k)
}

// FillDisk writes a file beside the data until the disk is full.
func (s *Server) FillDisk(ctx context.Context) error {
	return s.Exec(ctx, "! dd if=/dev/zero of="+dataDir+"/filler bs=64k")
}

// FreeDisk undoes FillDisk, and returns when the server answers.
func (s *Server) FreeDisk(ctx context.Context) error {
	if err := s.Exec(ctx, "rm "+dataDir+"/filler"); err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) error { return s.kind.ready(ctx, s.Addr()) })
}

// DSN makes an empty schema on a MySQL or MariaDB and returns its data source name; the schema is dropped when t ends.
func (s *Server) DSN(t testing.TB) string {
	t.Helper()
	schema := "t_" + strings.ToLower(rand.Text()[:16])
	dsn, err := s.NewSchema(t.Context(), schema)
	Must(t, err)
	t.Cleanup(func() {
		// If the test has left a transaction open, the DROP fails: the cleanup logs this and goes on.
		if err := s.SQL(context.Background(), "DROP DATABASE IF EXISTS "+schema); err != nil {
			t.Logf("testserver: schema %s stays until its server ends: %v", schema, err)
		}
	})
	return dsn
}

// NewSchema makes an empty schema on a MySQL or MariaDB and returns its data source name, for the hosts or, without any,
// this server.
func (s *Server) NewSchema(ctx context.Context, name string, hosts ...*Server) (dsn string, err error) {
	if hosts == nil {
		hosts = []*Server{s}
	}
	var addrs []string
	for _, host := range hosts {
		addrs = append(addrs, host.Addr())
	}
	return formatDSN(strings.Join(addrs, ","), name), s.SQL(ctx, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4 COLLATE "+collation)
}

// SQL runs statements on a MySQL or MariaDB, as root and on one connection.
func (s *Server) SQL(ctx context.Context, statements ...string) error {
	ctx, cancel := context.WithTimeout(ctx, faultLimit)
	defer cancel()
	return withSQL(s.Addr(), func(db *sql.DB) error {
		for _, statement := range statements {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%s: %s: %w", s, statement, err)
			}
		}
		return nil
	})
}

// Query runs a query that has one row, as root.
func (s *Server) Query(ctx context.Context, query string, row ...any) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return withSQL(s.Addr(), func(db *sql.DB) error { return db.QueryRowContext(ctx, query).Scan(row...) })
}

func withSQL(addr string, f func(*sql.DB) error) error {
	config, err := mysql.ParseDSN(formatDSN(addr, ""))
	if err != nil {
		return err
	}
	config.Logger = &mysql.NopLogger{} // the driver would log that a server does not answer yet
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	return f(db)
}

func formatDSN(addr, schema string) string {
	return fmt.Sprintf("root:%s@tcp(%s)/%s?collation=%s&parseTime=true", rootPassword, addr, schema, collation)
}
