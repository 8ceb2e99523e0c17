package orderhttp

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

type route struct {
	method, path string
	handle       gin.HandlerFunc
}

// routes is the table of everything that the API answers.
func (a *api) routes() []route {
	return []route{
		{http.MethodPost, "/v1/orders", a.placeOrder},
		{http.MethodGet, "/v1/orders/:id", a.getOrder},
		{http.MethodGet, "/v1/skus", a.listSKUs},
		{http.MethodGet, "/v1/skus/:sku", a.getSKU},
		{http.MethodGet, "/v1/audit", a.audit},
		{http.MethodPost, "/v1/skus", a.labOnly(a.createSKU)},
		{http.MethodGet, "/v1/strategies", a.labOnly(a.listStrategies)},
		{http.MethodGet, "/healthz", a.healthz},
		{http.MethodGet, "/readyz", a.readyz},
	}
}
