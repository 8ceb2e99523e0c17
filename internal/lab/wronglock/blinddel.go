package wronglock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// deleteBlindly is WRONG: if the holder's time ran out meanwhile, the key is
// somebody else's. DEL lets a third in while the second works, whose DEL lets in
// a fourth.
func deleteBlindly(ctx context.Context, client redis.UniversalClient, key, _ string) error {
	return client.Del(ctx, key).Err()
}
