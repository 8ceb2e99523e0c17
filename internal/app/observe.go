package app

import (
	"cmp"
	"database/sql"
	"fmt"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lab/wronglock"
	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/redlock"
	"example.com/shop/internal/metrics"
	"example.com/shop/internal/order/orderhttp"
	"example.com/shop/internal/store"
)

// newMetrics returns those of a shop that runs this program.
func newMetrics() *metrics.Metrics {
	build := ThisBuild()
	return metrics.New(metrics.Build{Version: build.Version, Commit: build.Commit})
}

// measure observes the connections and queues that are open. Whoever opens another
// queue adds it here.
func (p *parts) measure() error {
	conns, err := p.database.db.DB()
	if err != nil {
		return fmt.Errorf("measure the database's connections: %w", err)
	}
	p.metrics.Database(conns)
	p.metrics.Redis(p.redis)
	for name, locker := range p.lockers {
		p.metrics.Queue(name, locker.Queued)
	}
	return nil
}

// watchDatabase opens the database so that its statements are traced, if anything
// is, and recorded in teaching mode.
func (p *parts) watchDatabase(s Settings) []store.Option {
	if p.traces == nil && p.tapes == nil {
		return nil
	}
	open := sql.OpenDB
	if p.traces != nil {
		system := "mysql"
		if s.MySQL == "" {
			system = "sqlite"
		}
		open = p.traces.Database(system)
	}
	if p.tapes != nil {
		open = p.tapes.Database(open)
	}
	return []store.Option{store.Through(open)}
}

// recordRedis records the commands of teaching mode's requests.
func (p *parts) recordRedis(client redis.UniversalClient) {
	if p.tapes != nil {
		client.AddHook(p.tapes.Redis(scriptName))
	}
}

// scriptName tells what a script of a lock is for, by its hash.
func scriptName(hash string) string {
	return cmp.Or(lock.ScriptName(hash), redlock.ScriptName(hash), wronglock.ScriptName(hash))
}

// recordLock records what a lock's store says to them.
func (p *parts) recordLock(next lock.Observer) lock.Observer {
	if p.tapes == nil {
		return next
	}
	return p.tapes.Lock(next)
}

func (p *parts) traceRedis() error {
	if p.traces == nil {
		return nil
	}
	return p.traces.Redis(p.redis)
}

func (p *parts) traceHTTP() gin.HandlerFunc {
	if p.traces == nil {
		return nil
	}
	return p.traces.HTTP(orderhttp.IsHealthCheck)
}
