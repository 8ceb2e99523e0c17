package testserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
)

const groupSize = 3

// MySQLGroup is three MySQL in a group with a single primary: Group Replication.
type MySQLGroup struct{ Members []*Server }

// StartMySQLGroup starts a group for this test alone, and returns when all members are online; the first is the primary.
// A member that does not answer is expelled after five seconds, the shortest time there is. What a commit has
// acknowledged is on two members, in memory: none is to be started again.
func StartMySQLGroup(t testing.TB) *MySQLGroup {
	t.Helper()
	need(t, mysqlKind())
	on, err := network.New(t.Context())
	testcontainers.CleanupNetwork(t, on) // after the servers on it
	if err != nil {
		t.Fatalf("testserver: make a network: %v", err)
	}
	var all sync.WaitGroup
	g, failed := &MySQLGroup{make([]*Server, groupSize)}, make([]error, groupSize)
	for i := range g.Members {
		all.Go(func() {
			if g.Members[i], failed[i] = start(t.Context(), groupKind(i+1, on.Name)); failed[i] == nil {
				failed[i] = prepareMember(t.Context(), g.Members[i])
			}
		})
	}
	all.Wait()
	for _, s := range g.Members {
		if s != nil {
			testcontainers.CleanupContainer(t, s.container, testcontainers.StopTimeout(0))
		}
	}
	if err := errors.Join(failed...); err != nil {
		t.Fatalf("testserver: %v", err)
	}
	g.form(t)
	return g
}

// groupKind is the n-th member of a group.
func groupKind(n int, network string) kind {
	k := mysqlKind()
	name := func(n int) string { return fmt.Sprint("mysql", n) }
	k.network, k.alias = network, name(n)
	var seeds []string
	for i := range groupSize {
		seeds = append(seeds, name(i+1)+":33061")
	}
	k.command = slices.DeleteFunc(slices.Clone(k.command), func(option string) bool { return option == "--skip-log-bin" })
	k.command = append(k.command,
		"--server-id="+fmt.Sprint(n), "--report-host="+name(n), "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
		"--plugin-load-add=group_replication.so",
		"--loose-group-replication-group-name=6f1d2f3c-4f6e-4d2b-9c1a-3a5b7c9d1e2f",
		"--loose-group-replication-local-address="+name(n)+":33061",
		"--loose-group-replication-group-seeds="+strings.Join(seeds, ","),
		"--loose-group-replication-start-on-boot=OFF",
		"--loose-group-replication-recovery-get-public-key=1", // members show each other their passwords without TLS
		"--loose-group-replication-member-expel-timeout=0",
		"--loose-group-replication-message-cache-size=134217728",
	)
	return k
}

// prepareMember makes the user with which members copy from each other. What the image's entrypoint wrote is no
// transaction of the group.
func prepareMember(ctx context.Context, s *Server) error {
	return withSQL(s.addr, func(db *sql.DB) error {
		db.SetMaxOpenConns(1) // SQL_LOG_BIN is the session's
		for _, statement := range []string{
			"SET SQL_LOG_BIN = 0",
			"CREATE USER copy@'%' IDENTIFIED BY '" + rootPassword + "'",
			"GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO copy@'%'",
			"RESET BINARY LOGS AND GTIDS",
			"CHANGE REPLICATION SOURCE TO SOURCE_USER = 'copy', SOURCE_PASSWORD = '" + rootPassword +
				"' FOR CHANNEL 'group_replication_recovery'",
		} {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

// form lets the first member begin the group, and the others join.
func (g *MySQLGroup) form(t testing.TB) {
	t.Helper()
	join := func(i int) error {
		return withSQL(g.Members[i].addr, func(db *sql.DB) error {
			ctx, cancel := context.WithTimeout(t.Context(), startLimit)
			defer cancel()
			_, err := db.ExecContext(ctx, fmt.Sprintf("SET GLOBAL group_replication_bootstrap_group = %t", i == 0))
			if err == nil {
				_, err = db.ExecContext(ctx, "START GROUP_REPLICATION")
			}
			_, off := db.ExecContext(ctx, "SET GLOBAL group_replication_bootstrap_group = FALSE")
			return errors.Join(err, off)
		})
	}
	first := join(0)
	var others sync.WaitGroup
	failed := make([]error, groupSize)
	for i := 1; i < groupSize; i++ {
		others.Go(func() { failed[i] = join(i) })
	}
	others.Wait()
	if err := errors.Join(append(failed, first)...); err != nil {
		t.Fatalf("testserver: form a group: %v", err)
	}
	g.AwaitOnline(t, g.Members[0])
}

// AwaitOnline returns when all members are online, as this one sees it.
func (g *MySQLGroup) AwaitOnline(t testing.TB, s *Server) {
	t.Helper()
	Until(t, "all members are online", startLimit, func() bool {
		online := 0
		err := withSQL(s.addr, func(db *sql.DB) error {
			return db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'").Scan(&online)
		})
		return err == nil && online == groupSize
	})
}

// DSN makes an empty schema in the group and returns its data source name, with all members as its hosts.
func (g *MySQLGroup) DSN(t testing.TB, schema string) string {
	t.Helper()
	if _, err := g.Members[0].NewSchema(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for _, s := range g.Members {
		hosts = append(hosts, s.addr)
	}
	return sqlConfig(strings.Join(hosts, ","), schema).FormatDSN()
}

// ExecSQL runs a statement on a MySQL or MariaDB, as root.
func (s *Server) ExecSQL(t testing.TB, statement string) {
	t.Helper()
	if err := s.exec(t.Context(), statement); err != nil {
		t.Fatalf("testserver: %s: %s: %v", s, statement, err)
	}
}
