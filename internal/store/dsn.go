package store

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// ErrSettings means that a DSN, a path or an option cannot work. The message names the setting and never shows a
// password.
var ErrSettings = errors.New("database settings")

// ReadDSN is mysql.ParseDSN without the driver's error texts, which can quote a part of the password when the DSN is
// cut wrongly. A DSN whose TLS protects no password is refused.
func ReadDSN(dsn string) (*mysql.Config, error) {
	c, err := mysql.ParseDSN(dsn)
	switch {
	case err != nil || c.DBName == "" || !slices.Contains([]string{"tcp", "tcp4", "tcp6", "unix"}, c.Net):
		return nil, errors.New("it, or the value of a parameter in it, cannot be read: " +
			"want user:password@tcp(host:port)/database?parameter=value")
	case c.TLSConfig == "preferred", c.TLSConfig == "skip-verify", c.AllowFallbackToPlaintext:
		return nil, fmt.Errorf("parameter tls=%s, or allowFallbackToPlaintext, does without TLS or trusts any server: "+
			"want tls=true, or --mysql-ca with the file of the CA that signed the server's certificate", c.TLSConfig)
	}
	return c, nil
}

// mysqlConfig reads a DSN and adds what the shop relies on. The user's own timeouts, lock wait, TLS and other
// parameters win; those that would change what a statement means are set here, whatever the DSN says. secure requires
// TLS; nil leaves that to the DSN.
func mysqlConfig(dsn string, secure *tls.Config) (*mysql.Config, error) {
	c, err := ReadDSN(dsn)
	switch {
	case err != nil:
	case secure == nil:
	case c.Net == "unix", c.TLSConfig == "false":
		err = errors.New("a socket and tls=false contradict --mysql-ca, --mysql-cert and --mysql-key: leave out one or the other")
	default:
		c.TLS = secure.Clone()
		if c.TLS.ServerName == "" {
			c.TLS.ServerName, _, _ = net.SplitHostPort(c.Addr)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: mysql DSN: %w", ErrSettings, err)
	}

	// The shape of a result.
	c.ParseTime, c.Loc = true, time.UTC
	c.ClientFoundRows = true // 0 rows affected: nothing matched

	// One round trip a statement instead of prepare, execute, close. The driver quotes the bound values itself; that is
	// safe because the character set stays utf8mb4, in which no character has a quote or a backslash as its second
	// byte.
	c.InterpolateParams = true
	_ = c.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin")) // never an error

	c.RejectReadOnly = true       // the connection to a server that became read-only is dropped
	c.Logger = &mysql.NopLogger{} // errors are returned

	// Bounds for a server that is silent. Statements end earlier, with their context.
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 2*time.Minute)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)

	// Names of variables come in any case.
	fixed := map[string]string{
		"autocommit": "1", // a statement outside InTx is a transaction of its own
		"sql_mode":   "'STRICT_ALL_TABLES,ONLY_FULL_GROUP_BY,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
		"time_zone":  "'+00:00'",
	}
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	maps.DeleteFunc(c.Params, func(name, _ string) bool { return fixed[strings.ToLower(name)] != "" })
	maps.Copy(c.Params, fixed)
	c.Params["innodb_lock_wait_timeout"] = cmp.Or(c.Params["innodb_lock_wait_timeout"], "5") // seconds; the server's default is 50
	// A client that vanished holds the locks of its transaction until then; the server's default is 8 hours. Longer
	// than maxIdleTime, so that the pool closes a connection first.
	c.Params["wait_timeout"] = cmp.Or(c.Params["wait_timeout"], "90") // seconds
	return c, nil
}
