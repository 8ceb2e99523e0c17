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

// DSN is a data source name that has been read, for whoever wants to know where
// it leads. Printing one shows no password.
type DSN struct{ config *mysql.Config }

// ReadDSN reads a DSN without asking any server. Its errors say what is wrong
// and never show a password.
func ReadDSN(dsn string) (DSN, error) {
	c, err := parseDSN(dsn)
	return DSN{c}, err
}

// Address returns host:port, or the path of a socket.
func (d DSN) Address() string { return d.config.Addr }

// Database returns the name of the database.
func (d DSN) Database() string { return d.config.DBName }

// TLS reports whether the DSN asks for an encrypted connection.
func (d DSN) TLS() bool { return d.config.TLS != nil }

// HasPassword reports whether the password is this one.
func (d DSN) HasPassword(password string) bool { return d.config.Passwd == password }

// mysqlConfig reads a DSN and adds what the shop relies on. The user's own
// timeouts, lock wait, TLS and other parameters win; those that would change
// what a statement means are set here, whatever the DSN says.
func mysqlConfig(dsn string) (*mysql.Config, error) {
	c, err := parseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("%w: mysql DSN: %w", ErrSettings, err)
	}

	// The shape of a result.
	c.ParseTime, c.Loc = true, time.UTC
	c.ClientFoundRows = true // 0 rows affected: nothing matched
	c.ColumnsWithAlias = false

	// One round trip a statement instead of prepare, execute, close. The driver
	// quotes the bound values itself; that is safe because the character set is
	// fixed to utf8mb4, in which no character has a quote or a backslash as its
	// second byte, and because no connection changes it later.
	c.InterpolateParams = true
	if err := c.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin")); err != nil {
		return nil, fmt.Errorf("%w: mysql DSN: charset: %w", ErrSettings, err)
	}
	c.MultiStatements, c.AllowAllFiles = false, false

	// A server that became read-only (a failover) is left, not asked again.
	c.RejectReadOnly = true
	c.Logger = &mysql.NopLogger{} // errors are returned

	// No answer for so long means that none comes. Statements end earlier, with
	// their context. See migrationConfig.
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 2*time.Minute)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)

	// What a statement means. Names of variables come in any case.
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
	if c.Params["innodb_lock_wait_timeout"] == "" {
		c.Params["innodb_lock_wait_timeout"] = "5" // seconds; the server's default is 50
	}
	// A client that vanished without a word holds the locks of its transaction
	// until then; the server's default is 8 hours. Longer than Pool.MaxIdleTime, so
	// that the pool lets go of a connection first.
	if c.Params["wait_timeout"] == "" {
		c.Params["wait_timeout"] = "90" // seconds
	}
	return c, nil
}

// migrationConfig is c, which was made of this DSN, for a migration: an answer is
// waited for as long as it takes, unless the DSN itself says how long, and one
// connection may be idle while another one waits. A server that is gone is noticed
// by TCP.
func migrationConfig(c *mysql.Config, dsn string) (*mysql.Config, error) {
	users, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	c = c.Clone()
	c.ReadTimeout = users.ReadTimeout
	c.Params["wait_timeout"] = "86400" // seconds
	return c, nil
}

// parseDSN is mysql.ParseDSN with errors that name the setting. The driver's
// own can quote a part of the password when the DSN is cut wrongly.
func parseDSN(dsn string) (c *mysql.Config, err error) {
	const form = "want user:password@tcp(host:port)/database"
	if strings.TrimSpace(dsn) == "" {
		return nil, fmt.Errorf("it is empty: %s", form)
	}
	c, err = readDSN(dsn)
	if err != nil {
		if name := brokenParam(dsn); name != "" {
			return nil, fmt.Errorf("parameter %s has a value that cannot be used", name)
		}
		if !strings.Contains(dsn, "/") {
			return nil, fmt.Errorf("the database is missing: %s", form)
		}
		return nil, fmt.Errorf("the part before the parameters cannot be read: %s", form)
	}
	switch {
	case c.DBName == "":
		return nil, fmt.Errorf("the database is missing: %s", form)
	case !slices.Contains([]string{"tcp", "tcp4", "tcp6", "unix"}, c.Net):
		return nil, fmt.Errorf("the network is none of tcp, tcp4, tcp6, unix: %s", form)
	}
	return c, weakTLS(c)
}

// weakTLS refuses what looks like TLS and does not protect the password from
// whoever stands between shop and server.
func weakTLS(c *mysql.Config) error {
	const instead = "want tls=true, or --mysql-ca with the file of the CA that signed the server's certificate"
	switch {
	case c.TLSConfig == "preferred":
		return fmt.Errorf("parameter tls=preferred goes on without TLS if the server says that it has none: %s", instead)
	case c.TLSConfig == "skip-verify":
		return fmt.Errorf("parameter tls=skip-verify trusts any server: %s", instead)
	case c.AllowFallbackToPlaintext:
		return fmt.Errorf("parameter allowFallbackToPlaintext goes on without TLS if the server says that it has none: leave it out; %s", instead)
	}
	return nil
}

// requireTLS makes a configuration one with TLS, whatever its DSN left open.
func requireTLS(c *mysql.Config, secure *tls.Config) error {
	switch {
	case c.Net == "unix":
		return fmt.Errorf("%w: mysql DSN: a socket of this machine has no TLS: leave out --mysql-ca, --mysql-cert and --mysql-key", ErrSettings)
	case c.TLSConfig == "false":
		return fmt.Errorf("%w: mysql DSN: tls=false contradicts --mysql-ca, --mysql-cert and --mysql-key: leave out one or the other", ErrSettings)
	}
	c.TLS = secure.Clone()
	if c.TLS.ServerName == "" {
		c.TLS.ServerName, _, _ = net.SplitHostPort(c.Addr)
	}
	return nil
}

// brokenParam returns the name of the first parameter that cannot be read.
func brokenParam(dsn string) string {
	_, params, _ := strings.Cut(dsn[strings.LastIndexByte(dsn, '/')+1:], "?")
	for param := range strings.SplitSeq(params, "&") {
		if _, err := readDSN("/?" + param); err != nil {
			name, _, _ := strings.Cut(param, "=")
			return name
		}
	}
	return ""
}

// readDSN turns the panic that the driver has for the parameter strict into an
// error.
func readDSN(dsn string) (c *mysql.Config, err error) {
	defer func() {
		if recover() != nil {
			c, err = nil, errors.New("parameter has been removed")
		}
	}()
	return mysql.ParseDSN(dsn)
}
