package orderhttp

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

// document answers GET /openapi.yaml. It may be stored: it changes with the
// program alone, and the ETag tells.
func (a *api) document() gin.HandlerFunc {
	sum := sha256.Sum256([]byte(openAPI))
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return func(c *gin.Context) {
		c.Header("Cache-Control", "no-cache")
		c.Header("ETag", tag)
		if knows(c.Request.Header.Values("If-None-Match"), tag) {
			c.Status(http.StatusNotModified)
			return
		}
		c.Data(http.StatusOK, "application/yaml", []byte(openAPI))
	}
}

// knows reports whether a client that sends If-None-Match has what the tag names.
func knows(headers []string, tag string) bool {
	for _, known := range strings.Split(strings.Join(headers, ","), ",") {
		known = strings.TrimPrefix(strings.TrimSpace(known), "W/")
		if known == tag || known == "*" {
			return true
		}
	}
	return false
}
