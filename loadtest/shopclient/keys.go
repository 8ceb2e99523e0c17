package shopclient

import (
	"crypto/rand"
	"encoding/base64"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Keys open a shop that wants tokens. Many clients may use them at once.
type Keys struct {
	Secret   string // signs buyers' tokens
	Operator string // the operator's token
	Payments string // the payment service's token

	buyers sync.Map // their tokens, by name
}

// NewKeys returns random keys.
func NewKeys() *Keys {
	random := make([]byte, 96)
	_, _ = rand.Read(random) // it never fails
	encode := base64.StdEncoding.EncodeToString
	return &Keys{Secret: encode(random[:32]), Operator: encode(random[32:64]), Payments: encode(random[64:])}
}

// Environ returns the environment variables that give a shop these keys.
func (k *Keys) Environ() []string {
	return []string{"SHOP_TOKEN_SECRET=" + k.Secret, "SHOP_OPERATOR_TOKEN=" + k.Operator, "SHOP_PAYMENTS_TOKEN=" + k.Payments}
}

// token returns the token for a request. A buyer's is good for longer than a load test takes, also for a shop whose clock is
// wrong.
func (k *Keys) token(q request) (string, error) {
	switch {
	case q.payments:
		return k.Payments, nil
	case q.buyer == "":
		return k.Operator, nil
	}
	if token, ok := k.buyers.Load(q.buyer); ok {
		return token.(string), nil
	}
	now := time.Now()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": q.buyer, "aud": "shop:buyer", "nbf": now.Add(-12 * time.Hour).Unix(), "exp": now.Add(24 * time.Hour).Unix(),
	}).SignedString([]byte(k.Secret))
	if err == nil {
		k.buyers.Store(q.buyer, token)
	}
	return token, err
}
