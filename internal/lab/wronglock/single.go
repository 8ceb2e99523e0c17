package wronglock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// setIfAbsent and compareAndDelete are right, as far as a lock without a fence
// can be: each is one step. What short-lease does wrong is its TTL, after which
// its holder goes on as if nothing had happened.

func setIfAbsent(ctx context.Context, client redis.UniversalClient, key, owner string, ttl time.Duration) (bool, error) {
	err := client.Do(ctx, "SET", key, owner, "NX", "PX", ttl.Milliseconds()).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

var compareScript = redis.NewScript(`
	if redis.call("GET", KEYS[1]) == ARGV[1] then
		return redis.call("DEL", KEYS[1])
	end
	return 0`)

func compareAndDelete(ctx context.Context, client redis.UniversalClient, key, owner string) error {
	return compareScript.Run(ctx, client, []string{key}, owner).Err()
}

// ScriptName returns what the script with this hash is for; empty if it is not of
// this package.
func ScriptName(hash string) string {
	if hash == compareScript.Hash() {
		return "compare-and-delete"
	}
	return ""
}
