package app

import (
	"context"

	"example.com/shop/internal/order/orderhttp"
	"example.com/shop/internal/store"
)

// openProbe opens the database a second time, for readiness alone: a shop whose
// connections are all in use is busy, and not without a database. In the pool of the
// orders the question would wait behind thousands of them, so that all instances are
// taken out of the balancer in the middle of a rush; and nothing else that the pool
// shows tells a busy server from one that is away, since orders wait for either.
//
// It is one connection by the same settings, TLS and timeouts among them, kept while
// somebody asks once a minute and renewed with the age at which those of the orders
// are. It is not traced, and not among the connections that metrics count.
func openProbe(ctx context.Context, s Settings) (*Database, error) {
	return openDatabase(ctx, s, store.Pool{MaxOpen: 1})
}

// checks are the servers that must answer for the shop to be ready.
func (p *parts) checks() []orderhttp.Check {
	return []orderhttp.Check{
		p.check("database", p.probe.Ping),
		p.check("redis", func(ctx context.Context) error { return p.redis.Ping(ctx).Err() }),
	}
}

// check asks a server by ping. Each outage is told once, and its end.
func (p *parts) check(server string, ping func(context.Context) error) orderhttp.Check {
	o := &outage{}
	return orderhttp.Check{Name: server, Ping: func(ctx context.Context) error {
		err := ping(ctx)
		switch {
		case err != nil && o.began():
			p.log.WarnContext(ctx, "server does not answer, so the shop is not ready", "server", server, "error", err)
		case err == nil && o.ended():
			p.log.InfoContext(ctx, "server answers again", "server", server)
		}
		return err
	}}
}
