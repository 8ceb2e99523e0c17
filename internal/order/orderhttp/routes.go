package orderhttp

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

type route struct {
	method, path string
	handle       gin.HandlerFunc
	query        []string // parameters of the URL that it takes
}

// routes is the table of everything that the buyers' API answers.
func (a *api) routes() []route {
	table := []route{
		{http.MethodPost, "/v1/orders", a.placeOrder, nil},
		{http.MethodGet, "/v1/orders", a.listOrders, inPages()},
		{http.MethodGet, "/v1/orders/:id", a.getOrder, nil},
		{http.MethodPost, "/v1/orders/:id/pay", a.endOrder(a.Orders.Pay), nil},
		{http.MethodPost, "/v1/orders/:id/cancel", a.endOrder(a.Orders.Cancel), nil},
		{http.MethodGet, "/v1/skus", a.listSKUs, inPages()},
		{http.MethodGet, "/v1/skus/:sku", a.getSKU, nil},
		{http.MethodGet, "/v1/strategies", a.labOnly(a.listStrategies), nil},
		{http.MethodGet, "/openapi.yaml", a.document(), nil},
		{http.MethodGet, pathHealthz, a.healthz, nil},
		{http.MethodGet, pathReadyz, a.readyz, nil},
	}
	if a.Lab {
		table = append(table,
			route{http.MethodGet, "/v1/audit", a.audit, []string{"sku"}},
			route{http.MethodPost, "/v1/skus", a.createSKU, nil},
			route{http.MethodGet, "/v1/tapes/:tape", a.getTape, []string{"seen"}},
			route{http.MethodPost, "/v1/tapes/:tape/resume", a.resume, nil},
		)
	}
	return table
}
