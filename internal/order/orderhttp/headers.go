package orderhttp

import (
	"fmt"

	"github.com/gin-gonic/gin"
)

// Names of the headers that the API reads and writes.
const (
	headerKey      = "Idempotency-Key"
	headerReplayed = "Idempotent-Replayed"
	headerBuyer    = "Shop-Buyer"
	headerStrategy = "Shop-Strategy"
	headerThink    = "Shop-Think"
	headerTrace    = "Shop-Trace"
	headerTape     = "Shop-Tape"
	headerStop     = "Shop-Stop"

	headerAuthorization = "Authorization"
	headerRequestID     = "X-Request-Id"
)

// guest is the buyer of requests that name none.
const guest = "guest"

// header returns the value of a header that may come at most once, and whether
// it came.
func header(c *gin.Context, name string) (string, bool, error) {
	values := c.Request.Header.Values(name)
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", true, fmt.Errorf("%w: header %s comes %d times", errMalformed, name, len(values))
}

// idempotencyKey returns the key of a request, and whether it has one.
func idempotencyKey(c *gin.Context) (key string, given bool, err error) {
	return header(c, headerKey)
}

// buyer says who asks. A shop with tokens never believes a header.
func (a *api) buyer(c *gin.Context) (string, error) {
	if a.Buyers != nil {
		if name := exchangeOf(c).buyer; name != "" {
			return name, nil
		}
		return "", errNoToken
	}
	name, given, err := header(c, headerBuyer)
	if err == nil && !given {
		name = guest
	}
	return name, err
}
