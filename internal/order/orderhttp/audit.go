package orderhttp

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// audit answers GET /v1/audit. Differences are its result, not its failure: the
// status is 200 either way.
func (a *api) audit(c *gin.Context) {
	sku, report := c.Query("sku"), NewAuditReport()
	if err := a.Auditor.Audit(c.Request.Context(), sku, report.Account, report.Difference); err != nil {
		a.fail(c, inURL(sku, err))
		return
	}
	a.answer(c, http.StatusOK, report)
}
