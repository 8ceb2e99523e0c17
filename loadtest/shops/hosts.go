package shops

import (
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// mysqlHost returns the address and database of a DSN, without its password.
func mysqlHost(dsn string) string {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "the DSN given"
	}
	return c.Addr + "/" + c.DBName
}

// redisHost returns the address of host:port or a URL, without its password.
func redisHost(address string) string {
	if !strings.Contains(address, "://") {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		return "the URL given"
	}
	return u.Host
}
