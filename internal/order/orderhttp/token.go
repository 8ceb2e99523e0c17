package orderhttp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/auth"
)

// Buyers knows buyers by their tokens. *auth.Tokens does. An error that a token
// is to blame for matches auth.ErrToken.
type Buyers interface {
	Verify(token string) (buyer string, err error)
}

// buyersPaths is where a request is some buyer's.
const buyersPaths = "/v1/orders"

// knowBuyer takes the buyer from the token, before anything else of the request
// is read. Without Buyers it does nothing.
func (a *api) knowBuyer(c *gin.Context) {
	if a.Buyers == nil || !isBuyers(c.FullPath()) {
		return
	}
	token, err := bearer(c)
	if err != nil {
		c.Header("WWW-Authenticate", `Bearer realm="shop"`)
		a.fail(c, err)
		return
	}
	name, err := a.Buyers.Verify(token)
	if err != nil {
		if errors.Is(err, auth.ErrToken) {
			c.Header("WWW-Authenticate", `Bearer realm="shop", error="invalid_token"`)
		}
		a.fail(c, err)
		return
	}
	exchangeOf(c).buyer = name
}

// isBuyers reports whether a request with this route is some buyer's.
func isBuyers(path string) bool {
	return path == buyersPaths || strings.HasPrefix(path, buyersPaths+"/")
}

// bearer returns the token that a request shows, unread.
func bearer(c *gin.Context) (string, error) {
	value, given, err := header(c, headerAuthorization)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoToken, err)
	}
	scheme, token, _ := strings.Cut(value, " ")
	if !given || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", errNoToken
	}
	return token, nil
}
