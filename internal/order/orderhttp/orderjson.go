package orderhttp

import (
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// orderBody is what POST /v1/orders reads.
type orderBody struct {
	Lines []struct {
		SKU      string `json:"sku"`
		Quantity count  `json:"quantity"`
	} `json:"lines"`
}

func (b orderBody) lines() []order.RequestLine {
	lines := make([]order.RequestLine, len(b.Lines))
	for i, line := range b.Lines {
		lines[i] = order.RequestLine{SKU: line.SKU, Units: int64(line.Quantity)}
	}
	return lines
}

// orderJSON is an order as it is answered. A replay is encoded from the same
// order and so is the same text.
type orderJSON struct {
	ID        string     `json:"id"`
	Buyer     string     `json:"buyer"`
	Status    string     `json:"status"`
	Lines     []lineJSON `json:"lines"`
	Total     moneyJSON  `json:"total"`
	CreatedAt string     `json:"created_at"` // RFC 3339, UTC
	ExpiresAt string     `json:"expires_at"` // the same; until then a pending order can be paid
}

type orderPageJSON struct {
	Orders     []orderJSON `json:"orders"`
	NextCursor string      `json:"next_cursor,omitempty"` // absent on the last page
}

type lineJSON struct {
	SKU      string    `json:"sku"`
	Quantity int64     `json:"quantity"`
	Price    moneyJSON `json:"price"` // of one unit
}

type moneyJSON struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

func orderToJSON(o order.Order) orderJSON {
	lines := make([]lineJSON, len(o.Lines))
	for i, line := range o.Lines {
		lines[i] = lineJSON{SKU: line.SKU, Quantity: line.Units, Price: moneyToJSON(line.Price)}
	}
	return orderJSON{
		ID:        o.ID,
		Buyer:     o.Buyer,
		Status:    string(o.Status),
		Lines:     lines,
		Total:     moneyToJSON(o.Total),
		CreatedAt: o.CreatedAt.UTC().Format(time.RFC3339Nano),
		ExpiresAt: o.ExpiresAt.UTC().Format(time.RFC3339Nano),
	}
}

func moneyToJSON(m stock.Money) moneyJSON {
	return moneyJSON{Minor: m.Minor, Currency: m.Currency}
}
