package main

import (
	"errors"

	"example.com/shop/internal/tlsclient"
)

// mysqlTLSFlags say how to know the real MySQL, and how to be known by it.
type mysqlTLSFlags struct {
	MySQLCA   string `name:"mysql-ca" placeholder:"FILE" help:"Require TLS of MySQL, and a certificate for its host name that a CA in this PEM file signed. For CAs that the system trusts add ?tls=true to the DSN instead." variable:"SHOP_MYSQL_CA" rival:"data"`
	MySQLCert string `name:"mysql-cert" placeholder:"FILE" help:"Certificate to show to a MySQL that asks for one, PEM." variable:"SHOP_MYSQL_CERT" rival:"data"`
	MySQLKey  string `name:"mysql-key" placeholder:"FILE" help:"Private key of --mysql-cert." variable:"SHOP_MYSQL_KEY" rival:"data"`
}

func (f mysqlTLSFlags) mysqlTLS() tlsclient.Files {
	return tlsclient.Files{CA: f.MySQLCA, Cert: f.MySQLCert, Key: f.MySQLKey}
}

// redisTLSFlags are the same for Redis.
type redisTLSFlags struct {
	RedisCA   string `name:"redis-ca" placeholder:"FILE" help:"Require TLS of Redis, and a certificate for its host name that a CA in this PEM file signed. For CAs that the system trusts write --redis as a rediss:// URL instead." variable:"SHOP_REDIS_CA"`
	RedisCert string `name:"redis-cert" placeholder:"FILE" help:"Certificate to show to a Redis that asks for one, PEM." variable:"SHOP_REDIS_CERT"`
	RedisKey  string `name:"redis-key" placeholder:"FILE" help:"Private key of --redis-cert." variable:"SHOP_REDIS_KEY"`
}

func (f redisTLSFlags) redisTLS() tlsclient.Files {
	return tlsclient.Files{CA: f.RedisCA, Cert: f.RedisCert, Key: f.RedisKey}
}

// check refuses them for the lock server inside the process.
func (f redisTLSFlags) checkRedis(redis string) error {
	if redis == "" && !f.redisTLS().IsZero() {
		return errors.New("redis-ca, redis-cert, redis-key: are for a Redis, and none is named: add --redis")
	}
	return nil
}
