package orderhttp

import "example.com/shop/internal/stock"

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
}

func skuToJSON(s stock.SKU) skuJSON {
	return skuJSON{
		SKU:       s.Name,
		Price:     moneyToJSON(s.Price),
		Supplied:  s.Level.Supplied,
		Available: s.Level.Available,
		Reserved:  s.Level.Reserved,
		Sold:      s.Level.Sold,
	}
}

// skuBody is what POST /v1/skus reads.
type skuBody struct {
	SKU   string     `json:"sku"`
	Price *priceBody `json:"price"` // absent: defaultPrice
	Units count      `json:"units"`
}

type priceBody struct {
	Minor    count  `json:"minor"`
	Currency string `json:"currency"`
}

func (b skuBody) price() stock.Money {
	if b.Price == nil {
		return stock.Money{Minor: defaultPrice, Currency: "EUR"}
	}
	return stock.Money{Minor: int64(b.Price.Minor), Currency: b.Price.Currency}
}

// defaultPrice is that of a SKU which a lesson creates without caring: 10.00 EUR.
const defaultPrice = 10_00
