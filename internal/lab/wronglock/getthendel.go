package wronglock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// getThenDelete is WRONG: between GET and DEL the holder's time can run out and
// the key become somebody else's, the more easily the slower the network or the
// longer a pause of the process.
func getThenDelete(ctx context.Context, client redis.UniversalClient, key, owner string) error {
	holder, err := client.Get(ctx, key).Result()
	if err != nil || holder != owner {
		return err
	}
	return client.Del(ctx, key).Err()
}
