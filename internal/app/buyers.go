package app

import (
	"example.com/shop/internal/auth"
	"example.com/shop/internal/order/orderhttp"
)

// buyers returns what knows buyers by their tokens; nil, an interface that holds
// nothing, where they name themselves.
func buyers(s Settings) (orderhttp.Buyers, error) {
	if s.TokenSecret.IsZero() {
		return nil, nil
	}
	return auth.New(s.TokenSecret)
}
