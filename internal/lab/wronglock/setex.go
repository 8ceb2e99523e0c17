package wronglock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// overwrite is WRONG: without NX, SET takes the lock from whoever holds it, and
// everybody succeeds. It is meant to avoid the two steps of SETNX and EXPIRE.
func overwrite(ctx context.Context, client redis.UniversalClient, key, owner string, ttl time.Duration) (bool, error) {
	err := client.Do(ctx, "PSETEX", key, ttl.Milliseconds(), owner).Err()
	return err == nil, err
}
