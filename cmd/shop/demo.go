package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/stock"
)

// demoSKUs is what an embedded shop has to sell at first.
func demoSKUs(now time.Time) ([]stock.SKU, error) {
	var skus []stock.SKU
	for _, d := range []struct {
		name  string
		cents int64
		units int64
	}{
		{"demo-mug", 1250, 1_000},
		{"demo-shirt", 1900, 100},
		{"demo-print", 4900, 1},
	} {
		sku, err := stock.NewSKU(d.name, stock.Money{Minor: d.cents, Currency: "EUR"}, d.units, now)
		if err != nil {
			return nil, err
		}
		skus = append(skus, sku)
	}
	return skus, nil
}

// seedDemo creates the demo SKUs in a database file that has none of them, and
// returns the name of one that can be bought; empty if there is none.
func seedDemo(ctx context.Context, s app.Settings) (sample string, err error) {
	skus, err := demoSKUs(time.Now())
	if err != nil {
		return "", err
	}
	database, err := app.OpenDatabase(ctx, s)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if err := database.Prepare(ctx); err != nil {
		return "", err
	}
	found := 0
	for _, demo := range skus {
		sku, err := database.Stock().SKU(ctx, demo.Name)
		switch {
		case err == nil:
			found++
			if sample == "" && sku.Level.Available > 0 {
				sample = sku.Name
			}
		case !errors.Is(err, stock.ErrUnknownSKU):
			return "", fmt.Errorf("look for %s: %w", demo.Name, err)
		}
	}
	if found > 0 {
		return sample, nil
	}
	for _, demo := range skus {
		// Another shop on the same folder may be as fast.
		if err := database.Stock().Create(ctx, demo); err != nil && !errors.Is(err, stock.ErrExists) {
			return "", err
		}
	}
	return skus[0].Name, nil
}
