package testserver

import "context"

// kind is one sort of server: which image, how it is started, how it is asked whether it is ready.
type kind struct {
	name     string
	variable string // environment variable that names another image
	image    string
	port     string
	env      map[string]string
	fast     []string // options of a server that may lose its data
	data     string   // directory that a fast server keeps in memory
	// version returns the version the server itself reports; an error means that it is not ready.
	version func(ctx context.Context, addr string) (string, error)
}

const rootPassword = "test-only"

// fastSQL makes a commit cost no disk write; MySQL and MariaDB know all of them.
func fastSQL() []string {
	return []string{
		"--skip-log-bin",
		"--innodb-flush-log-at-trx-commit=0",
		"--innodb-doublewrite=OFF",
		"--skip-name-resolve",
		"--max-connections=500",
	}
}

func redisKind() kind {
	return kind{
		name:     "Redis",
		variable: "SHOP_TEST_REDIS_IMAGE",
		image:    "redis:8",
		port:     "6379/tcp",
		fast:     []string{"redis-server", "--save", "", "--appendonly", "no"},
		data:     "/data",
		version:  redisVersion,
	}
}

func redis7Kind() kind {
	k := redisKind()
	k.name, k.variable, k.image = "Redis 7", "SHOP_TEST_REDIS7_IMAGE", "redis:7"
	return k
}

func valkeyKind() kind {
	k := redisKind()
	k.name, k.variable, k.image = "Valkey", "SHOP_TEST_VALKEY_IMAGE", "valkey/valkey:9"
	k.fast[0] = "valkey-server"
	return k
}

func mysqlKind() kind {
	return kind{
		name:     "MySQL",
		variable: "SHOP_TEST_MYSQL_IMAGE",
		image:    "mysql:9",
		port:     "3306/tcp",
		env:      map[string]string{"MYSQL_ROOT_PASSWORD": rootPassword},
		fast:     append([]string{"mysqld", "--mysqlx=OFF"}, fastSQL()...),
		data:     "/var/lib/mysql",
		version:  sqlVersion,
	}
}

func mariadbKind() kind {
	return kind{
		name:     "MariaDB",
		variable: "SHOP_TEST_MARIADB_IMAGE",
		image:    "mariadb:10.11",
		port:     "3306/tcp",
		env:      map[string]string{"MYSQL_ROOT_PASSWORD": rootPassword},
		fast:     append([]string{"mariadbd"}, fastSQL()...),
		data:     "/var/lib/mysql",
		version:  sqlVersion,
	}
}
