package main

import "testing"

// Flags that make no sense are a mistake in the use, told before any server is
// asked, and each command that opens MySQL knows them.
func TestTLSFlags(t *testing.T) {
	t.Parallel()
	const dsn = "shop:geheim@tcp(127.0.0.1:1)/shop"
	for name, c := range map[string]struct {
		variables []string
		args      []string
		want      string
	}{
		"migrate, no such file": {nil, []string{"migrate", "--mysql", dsn, "--mysql-ca", "/nowhere/ca.pem"}, "/nowhere/ca.pem"},
		"audit, by variable":    {[]string{"SHOP_MYSQL_CA=/nowhere/ca.pem"}, []string{"audit", "--mysql", dsn}, "/nowhere/ca.pem"},
		"seed, key alone":       {nil, []string{"seed", "--sku", "mug", "--units", "1", "--mysql", dsn, "--mysql-key", "key.pem"}, "want both files"},
		"serve, preferred":      {nil, []string{"serve", "--mysql", dsn + "?tls=preferred", "--redis", "127.0.0.1:1"}, "--mysql-ca"},
		"serve, no such file":   {nil, []string{"serve", "--redis", "127.0.0.1:1", "--redis-ca", "/nowhere/ca.pem"}, "/nowhere/ca.pem"},
		"serve without redis":   {nil, []string{"serve", "--redis-ca", "/nowhere/ca.pem"}, "shop: redis-ca, redis-cert, redis-key: are for a Redis"},
		"serve without mysql":   {nil, []string{"serve", "--mysql-ca", "/nowhere/ca.pem"}, "are for a MySQL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shopWith(t, c.variables, c.args...).want(t, exitUsage, c.want)
		})
	}
	t.Run("a file that was typed stands before MySQL's variables", func(t *testing.T) {
		t.Parallel()
		variables := []string{"SHOP_MYSQL=" + dsn, "SHOP_MYSQL_CA=/nowhere/ca.pem"}
		shopWith(t, variables, "seed", "--data", t.TempDir(), "--sku", "mug", "--units", "1").want(t, exitDone)
	})
}
