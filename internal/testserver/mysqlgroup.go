package testserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const groupSize = 3

// MySQLGroup is three MySQL in a group with a single primary: Group Replication. They are durable, and keep their
// addresses over a restart.
type MySQLGroup struct {
	*ensemble
	Members []*Server
}

// StartMySQLGroup is OpenMySQLGroup for this test alone.
func StartMySQLGroup(t testing.TB) *MySQLGroup {
	t.Helper()
	return own(t, mysqlKind(), OpenMySQLGroup)
}

// OpenMySQLGroup starts a group and returns when all members are online; the first is the primary. A member that does
// not answer is expelled after five seconds, the shortest time there is. One that is started again stays outside until
// Rejoin, and is read-only.
func OpenMySQLGroup(ctx context.Context) (*MySQLGroup, error) {
	e, err := openEnsemble(ctx, groupSize, groupKind)
	if err != nil {
		return nil, err
	}
	g := &MySQLGroup{e, e.servers}
	for _, s := range g.Members {
		err = errors.Join(err, s.replicates(ctx, "SOURCE_USER = 'copy'", "group_replication_recovery"))
	}
	if err == nil {
		err = g.Rejoin(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// groupKind is a member of a group.
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

// replicaKind is a MySQL that others can copy from.
func replicaKind(i int, network string) kind {
	k := mysqlKind().durable()
	k.network, k.alias = network, replicaName(i)
	k.command = append(k.command, "--server-id="+fmt.Sprint(i+1), "--report-host="+k.alias,
		"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--innodb-buffer-pool-size=256M")
	return k
}

func replicaName(i int) string { return fmt.Sprint("mysql", i+1) }

// replicates sets from where a server copies by a channel, and makes the user for those that copy from it. What the
// image's entrypoint wrote is not for others. After a restart the server is read-only: another may be the primary.
func (s *Server) replicates(ctx context.Context, source, channel string) error {
	return s.SQL(ctx,
		"SET SQL_LOG_BIN = 0",
		"CREATE USER copy@'%' IDENTIFIED BY '"+rootPassword+"'",
		"GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO copy@'%'",
		"SET PERSIST_ONLY super_read_only = ON",
		"RESET BINARY LOGS AND GTIDS",
		"CHANGE REPLICATION SOURCE TO "+source+", SOURCE_PASSWORD = '"+rootPassword+"' FOR CHANNEL '"+channel+"'")
}

// memberView is what a member says of itself and the others.
type memberView struct {
	err               error // it does not answer
	state             string
	online            int
	majority, primary bool
}

func (g *MySQLGroup) views(ctx context.Context) (views []memberView) {
	for _, s := range g.Members {
		var v memberView
		v.err = s.ask(ctx, `SELECT COALESCE(MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_STATE, NULL)), 'OFFLINE'),
			SUM(MEMBER_STATE = 'ONLINE'),
			MAX(MEMBER_ID = @@server_uuid AND MEMBER_STATE IN ('ONLINE', 'RECOVERING')) AND 2 * SUM(MEMBER_STATE <> 'UNREACHABLE') > COUNT(*),
			MAX(MEMBER_ID = @@server_uuid AND MEMBER_STATE = 'ONLINE' AND MEMBER_ROLE = 'PRIMARY') AND NOT @@global.super_read_only
			FROM performance_schema.replication_group_members`, &v.state, &v.online, &v.majority, &v.primary)
		v.primary = v.primary && v.majority
		views = append(views, v)
	}
	return views
}

// onlyPrimary returns the index of the primary. While two take themselves for it, as where one was paused, there is none.
func onlyPrimary(views []memberView) (i int, err error) {
	isPrimary := func(v memberView) bool { return v.primary }
	i = slices.IndexFunc(views, isPrimary)
	if i < 0 || slices.ContainsFunc(views[i+1:], isPrimary) {
		return -1, fmt.Errorf("no primary, or more than one: %+v", views)
	}
	return i, nil
}

// Primary returns the member that is online, takes writes and sees a majority. It waits until there is one.
func (g *MySQLGroup) Primary(ctx context.Context) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	primary := -1
	if err := poll(ctx, func(ctx context.Context) (err error) {
		primary, err = onlyPrimary(g.views(ctx))
		return err
	}); err != nil {
		return nil, err
	}
	return g.Members[primary], nil
}

// Rejoin brings back the members that are offline, as after a restart, or were expelled, and returns when all are online.
// Where none has a majority any more it forms the group anew, around the member that has the others' transactions. All
// containers have to run, and reach each other.
func (g *MySQLGroup) Rejoin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return poll(ctx, func(ctx context.Context) error {
		views, whole := g.views(ctx), true
		for _, v := range views {
			if v.err != nil {
				return v.err
			}
			whole = whole && v.state == "ONLINE" && v.online == groupSize
		}
		if !slices.ContainsFunc(views, func(v memberView) bool { return v.majority }) {
			return g.formAnew(ctx)
		}
		if _, err := onlyPrimary(views); err != nil || whole {
			return err
		}
		for i, v := range views {
			if v.state == "OFFLINE" || v.state == "ERROR" {
				if err := g.Members[i].join(ctx, false); err != nil {
					return err
				}
			}
		}
		return fmt.Errorf("not all members are online: %+v", views)
	})
}

// formAnew begins a new group. It always returns an error: the others have not joined.
func (g *MySQLGroup) formAnew(ctx context.Context) error {
	has := make([]string, groupSize) // executed or received
	for i, s := range g.Members {
		if err := s.SQL(ctx, "STOP GROUP_REPLICATION"); err != nil {
			return err
		}
		if err := s.ask(ctx, `SELECT CONCAT_WS(',', @@global.gtid_executed, (SELECT RECEIVED_TRANSACTION_SET
			FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = 'group_replication_applier'))`, &has[i]); err != nil {
			return err
		}
	}
	for i, s := range g.Members {
		var all bool
		if err := s.ask(ctx, fmt.Sprintf("SELECT GTID_SUBSET('%s', '%s')", strings.Join(has, ","), has[i]), &all); err != nil {
			return err
		}
		if all {
			return errors.Join(errors.New("the others have not joined yet"), s.join(ctx, true))
		}
	}
	return fmt.Errorf("no member has the transactions of all: %q", has)
}

// join has the server begin a group, or join one.
func (s *Server) join(ctx context.Context, begin bool) error {
	return errors.Join(
		s.SQL(ctx, "STOP GROUP_REPLICATION", fmt.Sprintf("SET GLOBAL group_replication_bootstrap_group = %t", begin), "START GROUP_REPLICATION"),
		s.SQL(ctx, "SET GLOBAL group_replication_bootstrap_group = FALSE"))
}

// DSN makes an empty schema in the group and returns its data source name, with all members as its hosts.
func (g *MySQLGroup) DSN(ctx context.Context, schema string) (string, error) {
	primary, err := g.Primary(ctx)
	if err != nil {
		return "", err
	}
	return newSchema(ctx, primary, schema, g.Members...)
}
