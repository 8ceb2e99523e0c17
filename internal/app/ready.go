package app

import (
	"context"

	"example.com/shop/internal/order/orderhttp"
)

// checks are the servers that must answer for the shop to be ready.
func (p *parts) checks() []orderhttp.Check {
	return []orderhttp.Check{
		p.check("database", p.database.Ping),
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
