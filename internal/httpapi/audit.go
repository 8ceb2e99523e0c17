package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/stock"
)

// audit answers GET /v1/audit. Differences are its result, not its failure: the status is
// 200 either way.
func (a *api) audit(c *gin.Context) (int, any, error) {
	sku, report := c.Query("sku"), NewAuditReport()
	err := a.Auditor.Audit(c.Request.Context(), sku, report.Account, report.Difference)
	return http.StatusOK, report, inURL(sku, err)
}

// maxAudit is how many SKUs, and how many differences, one report lists.
const maxAudit = 1_000

// AuditReport is the JSON of an audit, of the API and of `shop audit --json`.
type AuditReport struct {
	OK          bool             `json:"ok"`
	SKUs        []accountJSON    `json:"skus"`
	Differences []differenceJSON `json:"differences"`
	Truncated   bool             `json:"truncated"` // more was found than is listed
}

// NewAuditReport returns the report of an audit that has found nothing yet. Its methods are
// the callbacks of an Auditor.
func NewAuditReport() *AuditReport {
	return &AuditReport{OK: true, SKUs: []accountJSON{}, Differences: []differenceJSON{}}
}

type accountJSON struct {
	SKU          string `json:"sku"`
	Supplied     int64  `json:"supplied"`
	Available    int64  `json:"available"`
	Reserved     int64  `json:"reserved"`
	Sold         int64  `json:"sold"`
	Orders       int64  `json:"orders"`
	OrderedUnits int64  `json:"ordered_units"`
	Oversold     int64  `json:"oversold"`
}

type differenceJSON struct {
	Invariant string `json:"invariant"`
	SKU       string `json:"sku,omitempty"`
	OrderID   string `json:"order_id,omitempty"`
	Detail    string `json:"detail"`
}

// Account adds a SKU. The error is always nil.
func (r *AuditReport) Account(a stock.Account) error {
	if len(r.SKUs) == maxAudit {
		r.Truncated = true
		return nil
	}
	r.SKUs = append(r.SKUs, accountJSON{
		SKU:          a.SKU,
		Supplied:     a.Level.Supplied,
		Available:    a.Level.Available,
		Reserved:     a.Level.Reserved,
		Sold:         a.Level.Sold,
		Orders:       a.Orders,
		OrderedUnits: a.OrderedUnits,
		Oversold:     a.Oversold(),
	})
	return nil
}

// Difference adds a broken invariant: the report is not OK. The error is always nil.
func (r *AuditReport) Difference(d stock.Difference) error {
	r.OK = false
	if len(r.Differences) == maxAudit {
		r.Truncated = true
		return nil
	}
	r.Differences = append(r.Differences, differenceJSON(d))
	return nil
}
