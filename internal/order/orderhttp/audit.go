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
	report := NewAuditReport()
	err = a.Auditor.Audit(c.Request.Context(), q["sku"], report.Account, report.Difference)
	if err != nil {
		a.fail(c, inURL(q["sku"], err))
		return
	}
	a.answer(c, http.StatusOK, report)
}
