package testserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const groupSize = 3

// MySQLGroup is three MySQL in a group with a single primary: Group Replication.
type MySQLGroup struct{ *Ensemble }

// OpenMySQLGroup starts a group and returns when all members are online; the first is the primary. A member that does
// not answer is expelled after five seconds, the shortest time there is. One that is started again stays outside until
// Rejoin, and is read-only.
func OpenMySQLGroup(ctx context.Context) (g *MySQLGroup, err error) {
	_, err = openEnsemble(ctx, groupSize, groupKind, func(e *Ensemble) error {
		g = &MySQLGroup{e}
		if err := e.each(func(_ int, s *Server) error {
			return s.prepare(ctx, "CHANGE REPLICATION SOURCE TO "+copyUser+" FOR CHANNEL 'group_replication_recovery'")
		}); err != nil {
			return err
		}
		return g.Rejoin(ctx)
	})
	return g, err
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

const copyUser = "SOURCE_USER = 'copy', SOURCE_PASSWORD = '" + rootPassword + "'"

// prepare makes the user for those that copy from a server, and runs further statements. What the image's entrypoint
// wrote is not for others. After a restart the server is read-only: another may be the primary.
func (s *Server) prepare(ctx context.Context, further ...string) error {
	return s.SQL(ctx, append([]string{
		"SET SQL_LOG_BIN = 0",
		"CREATE USER copy@'%' IDENTIFIED BY '" + rootPassword + "'",
		"GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO copy@'%'",
		"SET PERSIST_ONLY super_read_only = ON",
		"RESET BINARY LOGS AND GTIDS",
	}, further...)...)
}

// memberView is what a member says of itself and the others.
type memberView struct {
	err               error // it does not answer
	state             string
	online            int
	majority, primary bool
}

// look asks all members but some. While two take themselves for the primary, as where one was paused, there is none.
func (g *MySQLGroup) look(ctx context.Context, but ...*Server) (views []memberView, primary *Server) {
	primaries := 0
	for _, s := range g.Servers {
		if slices.Contains(but, s) {
			continue
		}
		var v memberView
		v.err = s.Query(ctx, `SELECT COALESCE(MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_STATE, NULL)), 'OFFLINE'),
			SUM(MEMBER_STATE = 'ONLINE'),
			MAX(MEMBER_ID = @@server_uuid AND MEMBER_STATE IN ('ONLINE', 'RECOVERING')) AND 2 * SUM(MEMBER_STATE <> 'UNREACHABLE') > COUNT(*),
			MAX(MEMBER_ID = @@server_uuid AND MEMBER_STATE = 'ONLINE' AND MEMBER_ROLE = 'PRIMARY') AND NOT @@global.read_only
			FROM performance_schema.replication_group_members`, &v.state, &v.online, &v.majority, &v.primary)
		if views = append(views, v); v.primary && v.majority {
			primary, primaries = s, primaries+1
		}
	}
	if primaries > 1 {
		primary = nil
	}
	return views, primary
}

// Primary returns the member that is online, takes writes and sees a majority. It waits until there is one. Some are not
// asked: they may not answer.
func (g *MySQLGroup) Primary(ctx context.Context, but ...*Server) (primary *Server, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err = poll(ctx, func(ctx context.Context) error {
		var views []memberView
		if views, primary = g.look(ctx, but...); primary == nil {
			return fmt.Errorf("no member is the primary: %+v", views)
		}
		return nil
	})
	return primary, err
}

// Rejoin brings back the members that are offline, as after a restart, or were expelled, and returns when all are online.
// Where none has a majority any more it forms the group anew, around the member that has the others' transactions. All
// containers have to run, and reach each other.
func (g *MySQLGroup) Rejoin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
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
		return errors.Join(fmt.Errorf("not all members are online: %+v", views), g.each(func(i int, s *Server) error {
			if state := views[i].state; primary != nil && (state == "OFFLINE" || state == "ERROR") {
				return s.join(ctx, false)
			}
			return nil
		}))
	})
}

// formAnew begins a new group. It always returns an error: the others have not joined. A member without a majority would
// try to leave the old group for a minute.
func (g *MySQLGroup) formAnew(ctx context.Context, views []memberView) error {
	has := make([]string, groupSize) // executed or received
	for i, s := range g.Servers {
		var err error
		if views[i].state != "OFFLINE" {
			err = errors.Join(s.Do(ctx, Kill), s.Do(ctx, Restart))
		}
		if err = cmp.Or(err, s.Query(ctx, `SELECT CONCAT_WS(',', @@global.gtid_executed, (SELECT RECEIVED_TRANSACTION_SET
			FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = 'group_replication_applier'))`, &has[i])); err != nil {
			return err
		}
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

// join has the server begin a group, or join one.
func (s *Server) join(ctx context.Context, begin bool) error {
	return errors.Join(
		s.SQL(ctx, "STOP GROUP_REPLICATION", fmt.Sprintf("SET GLOBAL group_replication_bootstrap_group = %t", begin), "START GROUP_REPLICATION"),
		s.SQL(ctx, "SET GLOBAL group_replication_bootstrap_group = FALSE"))
}

// MySQLReplicas is a MySQL, the first server, and a replica of it, which is read-only.
type MySQLReplicas struct{ *Ensemble }

// OpenMySQLReplicas starts the two, and returns when they are connected. The source acknowledges a commit before the
// replica has it.
func OpenMySQLReplicas(ctx context.Context) (r *MySQLReplicas, err error) {
	_, err = openEnsemble(ctx, 2, replicaKind, func(e *Ensemble) error {
		r = &MySQLReplicas{e}
		source, replica := r.Servers[0], r.Servers[1]
		if err := errors.Join(source.prepare(ctx), replica.prepare(ctx,
			"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '"+source.kind.alias+"', "+copyUser+", SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1",
			"START REPLICA", "SET GLOBAL super_read_only = ON")); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, faultLimit)
		defer cancel()
		return poll(ctx, func(ctx context.Context) error {
			return replica.Query(ctx, "SELECT 1 FROM performance_schema.replication_connection_status WHERE SERVICE_STATE = 'ON'", new(int))
		})
	})
	return r, err
}

// Promote has the replica take writes, when it has executed what it received.
func (r *MySQLReplicas) Promote(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	replica := r.Servers[1]
	if err := replica.SQL(ctx, "STOP REPLICA IO_THREAD"); err != nil {
		return err
	}
	err := poll(ctx, func(ctx context.Context) error {
		var behind bool
		err := replica.Query(ctx, `SELECT NOT GTID_SUBSET(RECEIVED_TRANSACTION_SET, @@global.gtid_executed)
			FROM performance_schema.replication_connection_status`, &behind)
		if err == nil && behind {
			err = errors.New("the replica has not executed what it has received")
		}
		return err
	})
	if err != nil {
		return err
	}
	return replica.SQL(ctx, "STOP REPLICA", "SET GLOBAL read_only = OFF")
}
