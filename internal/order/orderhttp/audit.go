package orderhttp

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// audit answers GET /v1/audit. Differences are its result, not its failure: the
// status is 200 either way.
func (a *api) audit(c *gin.Context) {
	q, err := query(c, "sku")
	if err != nil {
		a.fail(c, err)
		return
	}
	name := q["sku"]
	if name != "" {
		if _, err := a.sku(c, name); err != nil {
			a.fail(c, err)
			return
		}
	}
	report := NewAuditReport()
	err = a.Auditor.Audit(c.Request.Context(), name, report.Account, report.Difference)
	if err != nil {
		a.fail(c, err)
		return
	}
	a.answer(c, http.StatusOK, report)
}
