package steps

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"example.com/shop/internal/app"
	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

// pair is two instances of a shop on the same stores. One play at a time uses it.
type pair struct {
	where place
	conns *http.Client

	first  *process // nil after it was killed, until it is needed again
	second *app.Shop
	undo   []func() error
}

// openPair starts both.
func openPair(ctx context.Context, from shops.Instances, how pace) (*pair, error) {
	p := &pair{conns: shopclient.NewConnections(4, answering)}
	if err := p.open(ctx, from, how); err != nil {
		return nil, cleanup.Join(err, p.close(context.WithoutCancel(ctx)))
	}
	return p, nil
}

func (p *pair) open(ctx context.Context, from shops.Instances, how pace) (err error) {
	p.where = place{
		MySQL: from.MySQL, Redis: from.Redis, Redlock: from.Redlock, ZooKeeper: from.ZooKeeper,
		TTL: how.ttl, Wait: how.wait,
	}
	if from.MySQL == "" || from.Redis == "" {
		if err := p.embed(from); err != nil {
			return err
		}
	}
	if err := p.where.migrate(ctx); err != nil {
		return err
	}
	settings := p.where.settings()
	settings.Log = from.Log
	if p.second, err = app.Start(ctx, settings); err != nil {
		return fmt.Errorf("start instance 2: %w", err)
	}
	return p.ready(ctx)
}

// embed starts what no server was named for.
func (p *pair) embed(from shops.Instances) error {
	dir, err := os.MkdirTemp("", "shop-step-")
	if err != nil {
		return fmt.Errorf("folder for the embedded database: %w", err)
	}
	p.undo = append(p.undo, func() error { return os.RemoveAll(dir) })
	embedded, err := app.StartEmbedded(dir)
	if err != nil {
		return err
	}
	p.undo = append(p.undo, embedded.Close)
	if from.MySQL == "" {
		p.where.SQLite = embedded.SQLite()
	}
	if from.Redis != "" {
		return nil
	}
	p.where.Redis, p.where.RedisEmbedded = embedded.Redis(), true
	if len(from.Redlock) == 0 {
		p.where.Redlock, err = embedded.StartRedlock()
	}
	return err
}

// ready starts instance 1 again after it was killed.
func (p *pair) ready(ctx context.Context) (err error) {
	if p.first == nil {
		p.first, err = startProcess(ctx, p.where)
	}
	return err
}

// shop returns a client of instance 1 or 2.
func (p *pair) shop(instance int) *shopclient.Client {
	if instance == 1 {
		return shopclient.New(p.first.url, p.conns)
	}
	return shopclient.New(p.second.URL(), p.conns)
}

// kill ends instance 1 without a warning.
func (p *pair) kill() error {
	if p.first == nil {
		return nil
	}
	err := p.first.kill()
	p.first = nil
	return err
}

// close ends both and removes what was started for them.
func (p *pair) close(ctx context.Context) error {
	var errs []error
	if p.first != nil {
		errs = append(errs, p.first.close())
	}
	if p.second != nil {
		ctx, cancel := context.WithTimeout(ctx, stopping)
		defer cancel()
		errs = append(errs, p.second.Shutdown(ctx))
	}
	p.conns.CloseIdleConnections()
	for i := range p.undo {
		errs = append(errs, p.undo[len(p.undo)-1-i]())
	}
	return errors.Join(errs...)
}
