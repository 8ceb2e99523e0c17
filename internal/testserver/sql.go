package testserver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"
)

const (
	dataDir      = "/var/lib/mysql"
	askLimit     = 2 * time.Second
	rootPassword = "test-only"
	collation    = "utf8mb4_bin" // distinguishes strings that differ in any byte; both servers have it
)

// MySQL returns the DSN of an empty schema on a MySQL that the tests of a package share. The schema is dropped when t
// ends. Times are parsed as UTC; strings compare by their bytes. The user is root.
func MySQL(t testing.TB) (dsn string) { return share(t, mysqlKind()).DSN(t) }

// MariaDB is like MySQL, on a MariaDB.
func MariaDB(t testing.TB) (dsn string) { return share(t, mariadbKind()).DSN(t) }

// StartTLS starts a MySQL or a MariaDB for this test only, with TLS by these PEM texts. It also accepts
// clients without TLS.
func StartTLS(t testing.TB, mariadb bool, ca, cert, key []byte) *Server {
	t.Helper()
	k := mysqlKind()
	if mariadb {
		k = mariadbKind()
	}
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
		ready:    func(ctx context.Context, addr string) error { return query(ctx, addr, "SELECT 1", new(int)) },
	}
}

// OpenMySQLSmallDisk is like OpenMySQL, on a disk of 400 MB, for FillDisk. The server has no binary log, whose writes
// would not fail but wait until long after FreeDisk. A mysqld that aborts because it cannot roll back is restarted.
func OpenMySQLSmallDisk(ctx context.Context) (*Server, error) {
	k := mysqlKind().durable()
	k.command = append([]string{"sh", "-c", `until docker-entrypoint.sh "$@"; do sleep 0.1; done`, "sh"},
		append(k.command, "--skip-log-bin")...)
	k.memory = map[string]string{dataDir: "rw,size=400m"}
	return k.start(ctx)
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
	return Poll(ctx, func(ctx context.Context) error { return s.kind.ready(ctx, s.Addr()) })
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

// NewSchema makes an empty schema on a MySQL or MariaDB and returns its data source name, with the
// others as further hosts.
func (s *Server) NewSchema(ctx context.Context, name string, others ...*Server) (dsn string, err error) {
	addrs := []string{s.Addr()}
	for _, other := range others {
		addrs = append(addrs, other.Addr())
	}
	dsn = fmt.Sprintf("root:%s@tcp(%s)/%s?collation=%s&parseTime=true", rootPassword, strings.Join(addrs, ","), name, collation)
	return dsn, s.SQL(ctx, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4 COLLATE "+collation)
}

// SQL runs statements on a MySQL or MariaDB, as root and on one connection.
func (s *Server) SQL(ctx context.Context, statements ...string) error {
	ctx, cancel := context.WithTimeout(ctx, faultLimit)
	defer cancel()
	db := connect(s.Addr())
	defer func() { _ = db.Close() }()
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %s: %w", s, statement, err)
		}
	}
	return nil
}

// query asks for one row, as root.
func query(ctx context.Context, addr, query string, row ...any) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	db := connect(addr)
	defer func() { _ = db.Close() }()
	return db.QueryRowContext(ctx, query).Scan(row...)
}

func connect(addr string) *sql.DB {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr = "root", rootPassword, "tcp", addr
	config.Logger = &mysql.NopLogger{}         // the driver would log that a server does not answer yet
	connector, _ := mysql.NewConnector(config) // such a config is always valid
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db
}

const groupSize = 3 // members of a group or an ensemble

// MySQLGroup is three MySQL servers in Group Replication, with a single primary.
type MySQLGroup struct{ *Ensemble }

// OpenMySQLGroup starts a group and returns when all members are online; the first member is the primary. A member that
// does not answer is expelled after five seconds, the shortest possible time. A restarted member stays outside the
// group, and is read-only, until Rejoin.
func OpenMySQLGroup(ctx context.Context) (*MySQLGroup, error) {
	e, err := openEnsemble(ctx, groupSize, groupKind, func(e *Ensemble) error {
		for _, s := range e.Servers {
			if err := s.prepare(ctx, "CHANGE REPLICATION SOURCE TO "+copyUser+" FOR CHANNEL 'group_replication_recovery'"); err != nil {
				return err
			}
		}
		return (&MySQLGroup{e}).Rejoin(ctx)
	})
	return &MySQLGroup{e}, err
}

// groupKind returns the kind of a member of a group.
func groupKind(i int, network string) kind {
	k := replicaKind(i, network)
	var seeds []string
	for i := range groupSize {
		seeds = append(seeds, replicaName(i)+":33061")
	}
	k.command = append(k.command,
		"--plugin-load-add=group_replication.so",
		"--loose-group-replication-group-name=6f1d2f3c-4f6e-4d2b-9c1a-3a5b7c9d1e2f",
		"--loose-group-replication-local-address="+k.alias+":33061",
		"--loose-group-replication-group-seeds="+strings.Join(seeds, ","),
		"--loose-group-replication-start-on-boot=OFF",
		"--loose-group-replication-recovery-get-public-key=1", // members show each other their passwords without TLS
		"--loose-group-replication-member-expel-timeout=0",
		"--loose-group-replication-message-cache-size=134217728",
	)
	return k
}

// replicaKind returns the kind of a MySQL that other servers can copy from.
func replicaKind(i int, network string) kind {
	k := mysqlKind().durable()
	k.network, k.alias = network, replicaName(i)
	k.command = append(k.command, "--server-id="+fmt.Sprint(i+1), "--report-host="+k.alias,
		"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--innodb-buffer-pool-size=256M")
	return k
}

func replicaName(i int) string { return fmt.Sprint("mysql", i+1) }

const copyUser = "SOURCE_USER = 'copy', SOURCE_PASSWORD = '" + rootPassword + "'"

// prepare creates the user for servers that copy from this one, and runs further statements. It removes the image's own
// writes from the binary log. After a restart the server is read-only, because another server may be the primary.
func (s *Server) prepare(ctx context.Context, further ...string) error {
	return s.SQL(ctx, append([]string{
		"SET SQL_LOG_BIN = 0",
		"CREATE USER copy@'%' IDENTIFIED BY '" + rootPassword + "'",
		"GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO copy@'%'",
		"SET PERSIST_ONLY super_read_only = ON",
		"RESET BINARY LOGS AND GTIDS",
	}, further...)...)
}

// memberView is a member's view of itself and the others.
type memberView struct {
	err               error // the member does not answer
	state             string
	online            int
	majority, primary bool
	has               string // the transactions that the member has executed or received
}

// look asks all members except but. If two members consider themselves the primary, as after a pause,
// there is no primary.
func (g *MySQLGroup) look(ctx context.Context, but ...*Server) (views []memberView, primary *Server) {
	var primaries []*Server
	for _, s := range g.Servers {
		if slices.Contains(but, s) {
			continue
		}
		var v memberView
		v.err = query(ctx, s.Addr(), `SELECT COALESCE(MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_STATE, NULL)), 'OFFLINE'),
			SUM(MEMBER_STATE = 'ONLINE'),
			MAX(MEMBER_ID = @@server_uuid AND MEMBER_STATE IN ('ONLINE', 'RECOVERING')) AND 2 * SUM(MEMBER_STATE <> 'UNREACHABLE') > COUNT(*),
			MAX(MEMBER_ID = @@server_uuid AND MEMBER_STATE = 'ONLINE' AND MEMBER_ROLE = 'PRIMARY') AND NOT @@global.read_only,
			CONCAT_WS(',', @@global.gtid_executed, (SELECT RECEIVED_TRANSACTION_SET
				FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = 'group_replication_applier'))
			FROM performance_schema.replication_group_members`, &v.state, &v.online, &v.majority, &v.primary, &v.has)
		if views = append(views, v); v.primary && v.majority {
			primaries = append(primaries, s)
		}
	}
	if len(primaries) == 1 {
		primary = primaries[0]
	}
	return views, primary
}

// Primary waits until a member is online, takes writes and sees a majority, and returns it. It does not ask the members
// but, which may not answer.
func (g *MySQLGroup) Primary(ctx context.Context, but ...*Server) (primary *Server, err error) {
	err = Poll(ctx, func(ctx context.Context) error {
		var views []memberView
		if views, primary = g.look(ctx, but...); primary == nil {
			return fmt.Errorf("no member is the primary: %+v", views)
		}
		return nil
	})
	return primary, err
}

// Rejoin brings back the members that are offline, as after a restart, or were expelled, and returns when all are
// online. If no member sees a majority any more, Rejoin forms a new group around the member that has the others'
// transactions. All containers must run and reach each other.
func (g *MySQLGroup) Rejoin(ctx context.Context) error {
	return Poll(ctx, func(ctx context.Context) error {
		views, primary := g.look(ctx)
		majority, whole := false, primary != nil
		for _, v := range views {
			if v.err != nil {
				return v.err
			}
			majority = majority || v.majority
			whole = whole && v.state == "ONLINE" && v.online == groupSize
		}
		if whole {
			return nil
		}
		if !majority {
			return g.formAnew(ctx, views)
		}
		var joining errgroup.Group
		for i, s := range g.Servers {
			if state := views[i].state; primary != nil && (state == "OFFLINE" || state == "ERROR") {
				joining.Go(func() error { return s.join(ctx, false) })
			}
		}
		return errors.Join(fmt.Errorf("not all members are online: %+v", views), joining.Wait())
	})
}

// formAnew begins a new group when all members are offline. It always returns an error, because the
// others have not joined.
func (g *MySQLGroup) formAnew(ctx context.Context, views []memberView) error {
	var has []string
	for i, s := range g.Servers {
		if views[i].state != "OFFLINE" { // the member would try to leave the old group for a minute
			return errors.Join(errors.New("a member was started again"), s.Do(ctx, Kill), s.Do(ctx, Restart))
		}
		has = append(has, views[i].has)
	}
	for i, s := range g.Servers {
		var all bool
		if err := query(ctx, s.Addr(), fmt.Sprintf("SELECT GTID_SUBSET('%s', '%s')", strings.Join(has, ","), has[i]), &all); err != nil {
			return err
		}
		if all {
			return errors.Join(errors.New("the others have not joined yet"), s.join(ctx, true))
		}
	}
	return fmt.Errorf("no member has the transactions of all: %q", has)
}

// join makes the server begin a group or join one.
func (s *Server) join(ctx context.Context, begin bool) error {
	return errors.Join(
		s.SQL(ctx, "STOP GROUP_REPLICATION", fmt.Sprintf("SET GLOBAL group_replication_bootstrap_group = %t", begin), "START GROUP_REPLICATION"),
		s.SQL(ctx, "SET GLOBAL group_replication_bootstrap_group = FALSE"))
}

// OpenMySQLReplica starts a MySQL and a read-only replica of it, and returns when they are connected. The source
// acknowledges a commit before the replica has it.
func OpenMySQLReplica(ctx context.Context) (*Ensemble, error) {
	return openEnsemble(ctx, 2, replicaKind, func(e *Ensemble) error {
		source, replica := e.Servers[0], e.Servers[1]
		if err := errors.Join(source.prepare(ctx), replica.prepare(ctx,
			"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '"+source.kind.alias+"', "+copyUser+", SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1",
			"START REPLICA", "SET GLOBAL super_read_only = ON")); err != nil {
			return err
		}
		return Poll(ctx, func(ctx context.Context) error {
			return query(ctx, replica.Addr(), "SELECT 1 FROM performance_schema.replication_connection_status WHERE SERVICE_STATE = 'ON'", new(int))
		})
	})
}

// Promote makes a replica take writes once it has executed all received transactions.
func (s *Server) Promote(ctx context.Context) error {
	return s.SQL(ctx, "STOP REPLICA IO_THREAD",
		"DO WAIT_FOR_EXECUTED_GTID_SET((SELECT RECEIVED_TRANSACTION_SET FROM performance_schema.replication_connection_status))",
		"STOP REPLICA", "SET GLOBAL read_only = OFF")
}
