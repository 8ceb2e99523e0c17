package main

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/stock"
)

// demoSKUs is what a shop on a new database file has to sell at first.
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

// seedDemo creates the demo SKUs in a database file that has no SKU at all, and
// returns the name of one that can be bought, whoever created it; empty if there is
// none among the first.
func seedDemo(ctx context.Context, s app.Settings) (sample string, err error) {
	database, err := app.OpenDatabase(ctx, s)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if err := database.Prepare(ctx); err != nil {
		return "", err
	}
	found, err := database.Stock().List(ctx, "", samples)
	if err != nil {
		return "", err
	}
	for _, sku := range found {
		if sku.Level.Available > 0 {
			return sku.Name, nil
		}
	}
	if len(found) > 0 {
		return "", nil
	}
	skus, err := demoSKUs(time.Now())
	if err != nil {
		return "", err
	}
	for _, demo := range skus {
		// Another shop on the same folder may be as fast.
		if err := database.Stock().Create(ctx, demo); err != nil && !errors.Is(err, stock.ErrExists) {
			return "", err
		}
	}
	return skus[0].Name, nil
}

// samples is among how many SKUs one that can be bought is looked for.
const samples = 100
