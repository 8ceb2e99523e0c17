package lock_test

import (
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock/testserver"
)

func TestSentinel_MasterDies(t *testing.T) {
	t.Parallel()
	masterDies(t, startTrio(t))
}

func TestSentinel_MasterDiesAhead(t *testing.T) {
	t.Parallel()
	masterDiesAhead(t, startTrio(t))
}

// startTrio starts a master with two replicas, of which the Sentinels choose one
// when it dies.
func startTrio(t *testing.T) failover {
	t.Helper()
	master, sentinels := testserver.StartRedisSentinel(t)
	first := redis.NewSentinelClient(&redis.Options{Addr: sentinels[0]})
	defer func() { _ = first.Close() }()
	replicas, err := first.Replicas(t.Context(), testserver.SentinelName).Result()
	if err != nil {
		t.Fatal(err)
	}
	f := failover{
		ttl:     20 * time.Second, // time for a second election, should the first come to nothing
		connect: sentinel(sentinels),
		key:     t.Name(),
		master:  master,
		kill:    func(t *testing.T) { testserver.KillSentinelMaster(t, master, sentinels) },
	}
	for _, replica := range replicas {
		f.replicas = append(f.replicas, net.JoinHostPort(replica["ip"], replica["port"]))
	}
	return f
}
