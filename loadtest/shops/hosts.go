package shops

import (
	"errors"
	"fmt"

	"example.com/shop/internal/app"
)

// Check reports which server's address cannot be read, by its flag and without a
// password.
func (n Instances) Check() error {
	var errs []error
	if n.MySQL != "" {
		if _, err := app.MySQLAddress(n.MySQL); err != nil {
			errs = append(errs, fmt.Errorf("--%w", err))
		}
	}
	if n.Redis != "" {
		if _, err := app.RedisAddress(n.Redis); err != nil {
			errs = append(errs, fmt.Errorf("--%w", err))
		}
	}
	return errors.Join(errs...)
}

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
