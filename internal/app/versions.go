package app

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/order/orderhttp"
)

// askVersions asks the database and Redis what they are. A server that does not tell
// its version is named without.
func (p *parts) askVersions(ctx context.Context) (orderhttp.Servers, error) {
	database, err := p.database.version(ctx)
	if err != nil {
		return orderhttp.Servers{}, fmt.Errorf("version of %s: %w", p.database.Name(), err)
	}
	return orderhttp.Servers{Database: database, Redis: redisVersion(ctx, p.redis)}, nil
}

// version returns, for example, "SQLite 3.50.1", "MySQL 9.1.0" or "MariaDB 10.11.6".
func (d *Database) version(ctx context.Context) (string, error) {
	var version string
	if d.sqlite {
		err := d.db.WithContext(ctx).Raw("SELECT sqlite_version()").Scan(&version).Error
		return "SQLite " + version, err
	}
	if err := d.db.WithContext(ctx).Raw("SELECT VERSION()").Scan(&version).Error; err != nil {
		return "", err
	}
	if number, _, maria := strings.Cut(version, "-MariaDB"); maria {
		return "MariaDB " + number, nil
	}
	return "MySQL " + version, nil
}

// redisVersion returns, for example, "Redis 8.0.2" or "Valkey 9.0.0". A server may
// forbid the question, and the embedded one does not know the answer.
func redisVersion(ctx context.Context, client redis.UniversalClient) string {
	const unknown = "Redis protocol, version not told"
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return unknown
	}
	fields := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(info))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		fields[name] = value
	}
	switch {
	case fields["valkey_version"] != "":
		return "Valkey " + fields["valkey_version"]
	case fields["redis_version"] != "":
		return "Redis " + fields["redis_version"]
	}
	return unknown
}
