package shops

import "example.com/shop/internal/app"

// mysqlHost returns the address and database of a DSN, without its password.
func mysqlHost(dsn string) string {
	address, err := app.MySQLAddress(dsn)
	if err != nil {
		return "the DSN given"
	}
	return address
}

// redisHost returns the address of host:port or a URL, without its password.
func redisHost(address string) string {
	host, err := app.RedisAddress(address)
	if err != nil {
		return "the address given"
	}
	return host
}
