package testserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

const groupSize = 3 // members of a group or an ensemble

// MySQLGroup is three MySQL servers in Group Replication, with a single primary.
type MySQLGroup struct{ *Ensemble }

// OpenMySQLGroup starts a group and returns when all members are online; the first member is the primary. A member that
// does not answer is expelled after five seconds, the shortest possible time. A restarted member stays outside the
// group, and is read-only, until Rejoin.
func OpenMySQLGroup(ctx context.Context) (g *MySQLGroup, err error) {
	_, err = openEnsemble(ctx, groupSize, groupKind, func(e *Ensemble) (err error) {
		g = &MySQLGroup{e}
		for _, s := range g.Servers {
			err = errors.Join(err, s.prepare(ctx, "CHANGE REPLICATION SOURCE TO "+copyUser+" FOR CHANNEL 'group_replication_recovery'"))
		}
		if err != nil {
			return err
		}
		return g.Rejoin(ctx)
	})
	return g, err
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

// look asks all members except but. If two members consider themselves the primary, as after a pause, there is no primary.
func (g *MySQLGroup) look(ctx context.Context, but ...*Server) (views []memberView, primary *Server) {
	var primaries []*Server
	for _, s := range g.Servers {
		if slices.Contains(but, s) {
			continue
		}
		var v memberView
		v.err = s.Query(ctx, `SELECT COALESCE(MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_STATE, NULL)), 'OFFLINE'),
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
	err = poll(ctx, func(ctx context.Context) error {
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
	return poll(ctx, func(ctx context.Context) error {
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

// formAnew begins a new group when all members are offline. It always returns an error, because the others have not joined.
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
		if err := s.Query(ctx, fmt.Sprintf("SELECT GTID_SUBSET('%s', '%s')", strings.Join(has, ","), has[i]), &all); err != nil {
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
		return poll(ctx, func(ctx context.Context) error {
			return replica.Query(ctx, "SELECT 1 FROM performance_schema.replication_connection_status WHERE SERVICE_STATE = 'ON'", new(int))
		})
	})
}

// Promote makes a replica take writes once it has executed all received transactions.
func (s *Server) Promote(ctx context.Context) error {
	return s.SQL(ctx, "STOP REPLICA IO_THREAD",
		"DO WAIT_FOR_EXECUTED_GTID_SET((SELECT RECEIVED_TRANSACTION_SET FROM performance_schema.replication_connection_status))",
		"STOP REPLICA", "SET GLOBAL read_only = OFF")
}
