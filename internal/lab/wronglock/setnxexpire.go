package wronglock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// takeInTwoSteps is WRONG: a process that dies after SETNX, or whose EXPIRE is
// lost, leaves a key that never ends. Nobody takes this lock again until a person
// deletes it. SET key owner NX PX ttl is one step.
func takeInTwoSteps(ctx context.Context, client redis.UniversalClient, key, owner string, ttl time.Duration) (bool, error) {
	taken, err := client.Do(ctx, "SETNX", key, owner).Bool()
	if err != nil || !taken {
		return false, err
	}
	return true, client.PExpire(ctx, key, ttl).Err()
}
