package orderhttp

import (
	"fmt"

	"example.com/shop/internal/stock"
)

type skuPageJSON struct {
	SKUs       []skuJSON `json:"skus"`
	NextCursor string    `json:"next_cursor,omitempty"` // absent on the last page
}

type skuJSON struct {
	SKU       string    `json:"sku"`
	Price     moneyJSON `json:"price"`
	Supplied  int64     `json:"supplied"`
	Available int64     `json:"available"`
	Reserved  int64     `json:"reserved"`
	Sold      int64     `json:"sold"`

	LimitPerBuyer int64 `json:"limit_per_buyer,omitempty"` // absent if there is none
}

func skuToJSON(s stock.SKU) skuJSON {
	return skuJSON{
		SKU:       s.Name,
		Price:     moneyToJSON(s.Price),
		Supplied:  s.Level.Supplied,
		Available: s.Level.Available,
		Reserved:  s.Level.Reserved,
		Sold:      s.Level.Sold,

		LimitPerBuyer: s.LimitPerBuyer,
	}
}

// skuBody is what POST /v1/skus reads.
type skuBody struct {
	SKU   string     `json:"sku"`
	Price *priceBody `json:"price"` // in teaching mode, absent means defaultPrice
	Units count      `json:"units"`

	LimitPerBuyer count `json:"limit_per_buyer"` // 0 for none
}

type priceBody struct {
	Minor    *count `json:"minor"` // 0 is a price, absent is none
	Currency string `json:"currency"`
}

// price is what the body says. Only in teaching mode may it say nothing.
func (a *api) price(b skuBody) (stock.Money, error) {
	switch {
	case b.Price == nil && a.Lab:
		return stock.Money{Minor: defaultPrice, Currency: "EUR"}, nil
	case b.Price != nil && b.Price.Minor != nil:
		return stock.Money{Minor: int64(*b.Price.Minor), Currency: b.Price.Currency}, nil
	}
	return stock.Money{}, fmt.Errorf(`%w: price: want one such as {"minor":1250,"currency":"EUR"}`, stock.ErrInvalid)
}

// defaultPrice is that of a SKU which a lesson creates without caring: 10.00 EUR.
const defaultPrice = 10_00
