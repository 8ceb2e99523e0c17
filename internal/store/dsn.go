package store

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// ReadDSN is mysql.ParseDSN for a DSN that may name several hosts, tcp(db1:3306,db2:3306). It returns the settings for
// each host. It does not return the driver's error texts, which may quote a part of the password. It refuses a DSN
// whose TLS can fall back to plaintext or trusts any server.
func ReadDSN(dsn string) ([]*mysql.Config, error) {
	var configs []*mysql.Config
	for _, one := range splitHosts(dsn) {
		c, err := mysql.ParseDSN(one)
		switch {
		case err != nil || c.DBName == "" || !slices.Contains([]string{"tcp", "tcp4", "tcp6", "unix"}, c.Net):
			return nil, errors.New("the DSN, or the value of a parameter in it, cannot be read: " +
				"want user:password@tcp(host:port)/database?parameter=value, several hosts with commas")
		case c.TLSConfig == "preferred", c.TLSConfig == "skip-verify", c.AllowFallbackToPlaintext:
			return nil, fmt.Errorf("parameter tls=%s, or allowFallbackToPlaintext, allows plaintext or trusts any server: "+
				"want tls=true, or name the CA of the server's certificate by --mysql-ca", c.TLSConfig)
		case slices.ContainsFunc(configs, func(other *mysql.Config) bool { return other.Addr == c.Addr }):
			return nil, fmt.Errorf("host %s is named twice", c.Addr)
		}
		configs = append(configs, c)
	}
	return configs, nil
}

// splitHosts returns a DSN for each host of a DSN. The driver would read the list as one address, and
// as the name in the server's certificate. Like the driver, splitHosts looks between the parentheses
// after the last @ before the last slash.
func splitHosts(dsn string) []string {
	parts := regexp.MustCompile(`(?s)^((?:.*@)?tcp[46]?\()([^@]*)(\)/[^/]*)$`).FindStringSubmatch(dsn)
	if parts == nil {
		return []string{dsn}
	}
	var dsns []string
	for host := range strings.SplitSeq(parts[2], ",") {
		if strings.TrimSpace(host) == "" && strings.Contains(parts[2], ",") {
			return []string{""} // ReadDSN refuses it; the driver would take 127.0.0.1
		}
		dsns = append(dsns, parts[1]+strings.TrimSpace(host)+parts[3])
	}
	return dsns
}

const (
	idleInTx = 2 * time.Second
	// idleInPool is so short that the pool closes an idle connection before the server does: the pool looks for them once
	// a second. Only the pool of Sharing may find one closed, and then opens another.
	idleInPool = 500 * time.Millisecond
)

// mysqlConfigs reads a DSN, and adds the parameters that the shop relies on, for each host. The DSN may override
// timeouts, lock wait, TLS and other parameters, but not those that change the meaning of a statement, which are set
// here and by session. secure requires TLS; nil leaves TLS to the DSN.
func mysqlConfigs(dsn string, secure *tls.Config) ([]*mysql.Config, error) {
	configs, err := ReadDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("database settings: mysql DSN: %w", err)
	}
	connectTimeout := 5 * time.Second
	if len(configs) > 1 {
		connectTimeout = 2 * time.Second // another host may answer
	}
	for _, c := range configs {
		if secure != nil && (c.Net == "unix" || c.TLSConfig == "false") {
			return nil, errors.New("database settings: mysql DSN: a socket or tls=false contradicts --mysql-ca, --mysql-cert and " +
				"--mysql-key: leave out one or the other")
		}
		if secure != nil {
			c.TLS = secure // the driver copies it and adds the host's name
		}

		// The shape of a result.
		c.ParseTime, c.Loc = true, time.UTC
		c.ClientFoundRows = true // count all rows that a WHERE matched, changed or not

		// A statement takes one round trip, instead of prepare, execute and close, because the driver itself quotes the
		// bound values. This is safe in utf8mb4: no byte of a longer character is a quote or a backslash.
		c.InterpolateParams = true
		_ = c.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin")) // never an error

		c.RejectReadOnly = false      // or the driver hides the reason; a transaction drops its connection (tx.go)
		c.Logger = &mysql.NopLogger{} // errors are returned

		// Timeouts for a server that does not answer. A statement ends earlier if its context does.
		c.Timeout = cmp.Or(c.Timeout, connectTimeout)
		c.ReadTimeout = cmp.Or(c.ReadTimeout, 2*time.Minute)
		c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)

		params := map[string]string{
			"innodb_lock_wait_timeout": "5", // seconds; the server's default is 50; see Sharing
			// A statement waits this long while another session locks the table or the server: ALTER TABLE, FLUSH TABLES
			// WITH READ LOCK. It goes on waiting after the client has given up. The server's default is a year.
			"lock_wait_timeout": "5", // seconds
			// The server rolls a transaction back if its client sends nothing for this long, because the client is stopped or
			// cut off: until then, the transaction keeps its locks. The server's default is 8 hours.
			"wait_timeout": strconv.Itoa(int(idleInTx.Seconds())),
		}
		maps.Copy(params, c.Params) // the DSN overrides these
		c.Params = params
	}
	return configs, nil
}

// session sets the variables that the meaning of the shop's statements depends on, because a server,
// its init_connect or a user may have changed them. It runs on each connection, after the parameters of
// the DSN. MySQL skips comments that begin with /*M!, and MariaDB those with /*!80000. SET TRANSACTION
// is a statement of its own because the two servers name its variables differently.
//
// In READ COMMITTED, a SELECT FOR UPDATE of a missing row does not lock the gap, so that others can insert there.
var session = []string{ //nolint:gochecknoglobals // a table
	`SET autocommit = 1, completion_type = 0,
		sql_select_limit = 18446744073709551615, sql_big_selects = 1, sql_safe_updates = 0, sql_auto_is_null = 0,
		unique_checks = 1, max_sort_length = 1024, time_zone = '+00:00',
		sql_mode = 'STRICT_ALL_TABLES,ONLY_FULL_GROUP_BY,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'
		/*!80000 , max_execution_time = 0 */
		/*M!100600 , max_statement_time = 0, check_constraint_checks = 1 */`,
	"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
}
