package httpapi

import (
	"crypto/sha256"
	_ "embed" // for the document
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

//go:embed openapi.yaml
var openAPI string

// OpenAPI returns the API's contract, an OpenAPI 3.1 document in YAML.
func OpenAPI() string { return openAPI }

// document answers GET /openapi.yaml. It may be stored: it changes with the program alone,
// and the ETag tells.
func (a *api) document(c *gin.Context) (int, any, error) {
	sum := sha256.Sum256([]byte(openAPI))
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	c.Header("Cache-Control", "no-cache")
	c.Header("ETag", tag)
	if strings.Contains(c.GetHeader("If-None-Match"), tag) {
		c.Status(http.StatusNotModified)
		return 0, nil, nil
	}
	c.Data(http.StatusOK, "application/yaml", []byte(openAPI))
	return 0, nil, nil
}
