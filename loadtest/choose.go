package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/shopclient"
)

// asking is the limit of a request outside of races.
const asking = 30 * time.Second

// choose resolves --strategies against the table of the shop, and returns what the
// shop says of itself as well. An unknown name is a cli.ErrUsage that lists the known
// ones, and so are one that is there twice and one that this shop lacks a server for,
// which says which. Of "all", the latter are left out.
func (l lab) choose(ctx context.Context) (chosen []shopclient.Strategy, shop shopclient.Lab, err error) {
	set, err := l.source(1).Open(ctx)
	if err != nil {
		return nil, shop, err
	}
	defer func() { err = cleanup.Join(err, set.Close()) }()

	conns := shopclient.NewConnections(1, asking)
	defer conns.CloseIdleConnections()
	shop, err = shopclient.New(set.URLs[0], conns).Lab(ctx)
	if errors.Is(err, shopclient.ErrNotLab) {
		return nil, shop, fmt.Errorf("%s: %w; start it with: shop serve --lab", set.URLs[0], err)
	}
	if err != nil {
		return nil, shop, fmt.Errorf("%w; is there a shop in teaching mode? start one with: shop serve --lab", err)
	}
	chosen, err = pick(shop.Strategies, l.Strategies)
	return chosen, shop, err
}

// pick returns the strategies of these names, all of them for the name "all", also
// those that are not available.
func pick(table []shopclient.Strategy, names []string) ([]shopclient.Strategy, error) {
	if slices.Equal(names, []string{all}) {
		return table, nil
	}
	var chosen []shopclient.Strategy
	for _, name := range names {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(table, func(s shopclient.Strategy) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: --strategies: %.80q is not one of %s, or 'all' alone", cli.ErrUsage, name, list(table))
		}
		if slices.ContainsFunc(chosen, func(s shopclient.Strategy) bool { return s.Name == name }) {
			return nil, fmt.Errorf("%w: --strategies: %s is there twice", cli.ErrUsage, name)
		}
		if s := table[i]; !s.Available {
			return nil, fmt.Errorf("%w: --strategies: %s cannot be run: %s", cli.ErrUsage, s.Name, s.Reason)
		}
		chosen = append(chosen, table[i])
	}
	return chosen, nil
}

func list(table []shopclient.Strategy) string {
	var names []string
	for _, s := range table {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}
