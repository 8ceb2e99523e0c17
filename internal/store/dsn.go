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

// ErrSettings means that a DSN, a path or an option is invalid. The message names the setting and never shows a
// password.
var ErrSettings = errors.New("database settings")

// ReadDSN is mysql.ParseDSN without the driver's error texts, which can quote a part of the password of a malformed
// DSN. A DSN whose TLS can fall back to plaintext, or trusts any server, is refused.
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

// mysqlConfig reads a DSN and adds the parameters that the shop relies on. Timeouts, lock wait, TLS and other
// parameters of the DSN win, but parameters that change the meaning of a statement are always set here. secure requires
// TLS; nil leaves that to the DSN.
func mysqlConfig(dsn string, secure *tls.Config) (*mysql.Config, error) {
	c, err := ReadDSN(dsn)
	if err == nil && secure != nil && (c.Net == "unix" || c.TLSConfig == "false") {
		err = errors.New("a socket and tls=false contradict --mysql-ca, --mysql-cert and --mysql-key: leave out one or the other")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: mysql DSN: %w", ErrSettings, err)
	}
	if secure != nil {
		c.TLS = secure.Clone()
		if c.TLS.ServerName == "" {
			c.TLS.ServerName, _, _ = net.SplitHostPort(c.Addr)
		}
	}

	// The shape of a result.
	c.ParseTime, c.Loc = true, time.UTC
	c.ClientFoundRows = true // count the rows that a WHERE matched, changed or not

	// One round trip for a statement instead of prepare, execute, close. The driver quotes the bound values itself.
	// That is safe because the character set is always utf8mb4: no byte of a longer character is a quote or a
	// backslash.
	c.InterpolateParams = true
	_ = c.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin")) // never an error

	c.RejectReadOnly = true       // the connection to a server that became read-only is dropped
	c.Logger = &mysql.NopLogger{} // errors are returned

	// Timeouts for a server that does not answer. Statements end earlier, with their context.
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 2*time.Minute)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)

	// The case of names does not matter.
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
	// The locks of a transaction whose client is gone are held that long; the server's default is 8 hours. It is longer
	// than the pool's ConnMaxIdleTime, so that the pool closes an idle connection first.
	c.Params["wait_timeout"] = cmp.Or(c.Params["wait_timeout"], "90") // seconds
	return c, nil
}
