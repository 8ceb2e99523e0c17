package orderhttp

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/stock"
)

func movementCursor() cursor { return cursor{name: "movement1", valid: validID} }

// listMovements answers GET /v1/skus/{sku}/movements, the earliest first.
func (o *operator) listMovements(c *gin.Context) {
	sku := c.Param("sku")
	if !stock.ValidName(sku) {
		o.fail(c, inURL(sku, stock.ErrUnknownSKU))
		return
	}
	after, limit, err := page(c, movementCursor())
	if err != nil {
		o.fail(c, err)
		return
	}
	found, err := o.stock.Movements(c.Request.Context(), sku, after, limit+1)
	if err != nil {
		o.fail(c, inURL(sku, err))
		return
	}
	found, next := cut(movementCursor(), found, limit, func(m stock.Movement) string { return m.ID })
	shown := make([]movementJSON, len(found))
	for i, m := range found {
		shown[i] = movementToJSON(m)
	}
	o.answer(c, http.StatusOK, movementPageJSON{Movements: shown, NextCursor: next})
}

type movementPageJSON struct {
	Movements  []movementJSON `json:"movements"`
	NextCursor string         `json:"next_cursor,omitempty"` // absent on the last page
}

// movementJSON is a row of the ledger: its counts are what it added, negative
// where units left.
type movementJSON struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	OrderID   string `json:"order_id,omitempty"` // absent for a supply
	Supplied  int64  `json:"supplied"`
	Available int64  `json:"available"`
	Reserved  int64  `json:"reserved"`
	Sold      int64  `json:"sold"`
	Fence     int64  `json:"fence"`
	CreatedAt string `json:"created_at"` // RFC 3339, UTC
}

func movementToJSON(m stock.Movement) movementJSON {
	return movementJSON{
		ID:        m.ID,
		Kind:      string(m.Kind),
		OrderID:   m.OrderID,
		Supplied:  m.Change.Supplied,
		Available: m.Change.Available,
		Reserved:  m.Change.Reserved,
		Sold:      m.Change.Sold,
		Fence:     m.Fence,
		CreatedAt: m.At.UTC().Format(time.RFC3339Nano),
	}
}
