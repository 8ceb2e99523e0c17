package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// asking is the limit of a request outside of races.
const asking = 30 * time.Second

// choose resolves --strategies against the table of the shop. An unknown name is
// an errUsage that lists the known ones.
func (l lab) choose(ctx context.Context) (chosen []shopclient.Strategy, err error) {
	set, err := l.source(1).Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()

	conns := shopclient.NewConnections(1, asking)
	defer conns.CloseIdleConnections()
	table, err := shopclient.New(set.URLs[0], conns).Strategies(ctx)
	if errors.Is(err, shopclient.ErrNotLab) {
		return nil, fmt.Errorf("%s: %w; start it with: shop serve --lab", set.URLs[0], err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; is there a shop in teaching mode? start one with: shop serve --lab", err)
	}
	return pick(table, l.Strategies)
}

// pick returns the strategies of these names, all of them for the name "all".
func pick(table []shopclient.Strategy, names []string) ([]shopclient.Strategy, error) {
	if slices.Equal(names, []string{"all"}) {
		return table, nil
	}
	var chosen []shopclient.Strategy
	for _, name := range names {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(table, func(s shopclient.Strategy) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: --strategies: %.80q is not one of %s, or 'all' alone", errUsage, name, list(table))
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
