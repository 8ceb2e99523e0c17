package app

import (
	"fmt"

	"example.com/shop/internal/store"
)

// MySQLAddress returns where a DSN leads, as host:port/database, for people: it
// holds no user and no password.
func MySQLAddress(dsn string) (string, error) {
	d, err := readDSN(dsn)
	if err != nil {
		return "", err
	}
	return d.Address() + "/" + d.Database(), nil
}

// RedisAddress returns the host:port of an address or URL, without user and
// password.
func RedisAddress(address string) (string, error) {
	options, err := redisOptions(address)
	if err != nil {
		return "", err
	}
	return options.Addr, nil
}

// readDSN names the flag in what it has to complain of.
func readDSN(dsn string) (store.DSN, error) {
	d, err := store.ReadDSN(dsn)
	if err != nil {
		return d, fmt.Errorf("mysql: %w", err)
	}
	return d, nil
}
