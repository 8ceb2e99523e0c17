package orderhttp

import (
	"fmt"
	"net/url"

	"github.com/gin-gonic/gin"
)

// Names of the headers that the API reads and writes.
const (
	headerKey      = "Idempotency-Key"
	headerReplayed = "Idempotent-Replayed"
	headerBuyer    = "Shop-Buyer"
	headerStrategy = "Shop-Strategy"
	headerThink    = "Shop-Think"
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

// buyer says who asks.
func buyer(c *gin.Context) (string, error) {
	name, given, err := header(c, headerBuyer)
	if err == nil && !given {
		name = guest
	}
	return name, err
}

// query returns the parameters of the URL, each at most once.
func query(c *gin.Context, names ...string) (map[string]string, error) {
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%w: the query of the URL cannot be read", errMalformed)
	}
	found := map[string]string{}
	for _, name := range names {
		if len(values[name]) > 1 {
			return nil, fmt.Errorf("%w: parameter %s comes %d times", errMalformed, name, len(values[name]))
		}
		found[name] = values.Get(name)
	}
	return found, nil
}
