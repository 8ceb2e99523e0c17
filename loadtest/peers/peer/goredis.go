package peer

import "github.com/redis/go-redis/v9"

const goRedisModule = "github.com/redis/go-redis/v9"

// connect returns the client that all peers over go-redis use: with a connection
// for every goroutine, so that none waits for the pool, and bound by contexts.
func connect(addr, name string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                  addr,
		ClientName:            name,
		PoolSize:              128,
		ContextTimeoutEnabled: true,
	})
}
