package orderhttp

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
)

const howToSwitchOn = "start the shop with `shop serve --lab`"

// labOnly lets requests through to handle in teaching mode, and else tells how to
// switch that on.
func (a *api) labOnly(handle gin.HandlerFunc) gin.HandlerFunc {
	if a.Lab {
		return handle
	}
	return func(c *gin.Context) {
		a.fail(c, fmt.Errorf("%w: %s %s is there only in teaching mode, %s",
			errLabOff, c.Request.Method, c.FullPath(), howToSwitchOn))
	}
}

// listStrategies answers GET /v1/strategies.
func (a *api) listStrategies(c *gin.Context) {
	table := order.Strategies()
	shown := make([]strategyJSON, len(table))
	for i, s := range table {
		shown[i] = strategyJSON{Name: s.Name, Lock: s.Lock, Take: string(s.Take), PromisesCorrect: s.Promises, Lesson: s.Lesson}
		if a.Missing != nil {
			shown[i].Reason = a.Missing(s.Name)
		}
		shown[i].Available = shown[i].Reason == ""
	}
	a.answer(c, http.StatusOK, strategiesJSON{Strategies: shown, Database: a.Servers.Database, Redis: a.Servers.Redis})
}

type strategiesJSON struct {
	Strategies []strategyJSON `json:"strategies"` // the default first
	Database   string         `json:"database"`
	Redis      string         `json:"redis"`
}

type strategyJSON struct {
	Name            string `json:"name"`
	Lock            string `json:"lock"` // empty for none
	Take            string `json:"take"`
	PromisesCorrect bool   `json:"promises_correct"`
	Lesson          string `json:"lesson"`
	Available       bool   `json:"available"`
	Reason          string `json:"reason,omitempty"` // why it is not
}
