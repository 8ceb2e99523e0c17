package orderhttp

import (
	"encoding/json"
	"fmt"

	"github.com/gin-gonic/gin"
)

const (
	jsonType    = "application/json; charset=utf-8"
	problemType = "application/problem+json"
)

// answer writes v as JSON.
func (a *api) answer(c *gin.Context, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		a.fail(c, fmt.Errorf("encode answer: %w", err))
		return
	}
	c.Data(status, jsonType, append(body, '\n'))
}
