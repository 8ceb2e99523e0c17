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
	SKU   string `json:"sku"`
	Price struct {
		Minor    count  `json:"minor"`
		Currency string `json:"currency"`
	} `json:"price"`
	Units count `json:"units"`
}
