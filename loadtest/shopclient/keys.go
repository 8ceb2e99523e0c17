package shopclient

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Keys open a shop that wants tokens. Many clients may use them at once.
type Keys struct {
	Secret   string // signs buyers' tokens
	Operator string // the operator's token
	Payments string // the payment service's token

	mu     sync.Mutex
	tokens map[string]string // of buyers
}

// NewKeys returns random keys.
func NewKeys() *Keys {
	random := make([]byte, 96)
	_, _ = rand.Read(random) // it never fails
	encode := base64.StdEncoding.EncodeToString
	return &Keys{Secret: encode(random[:32]), Operator: encode(random[32:64]), Payments: encode(random[64:]), tokens: map[string]string{}}
}

// Environ returns the environment variables that give a shop these keys.
func (k *Keys) Environ() []string {
	return []string{"SHOP_TOKEN_SECRET=" + k.Secret, "SHOP_OPERATOR_TOKEN=" + k.Operator, "SHOP_PAYMENTS_TOKEN=" + k.Payments}
}

// show replaces the name of a buyer by a token, and adds the operator's where there is neither a name nor a token.
func (k *Keys) show(header http.Header) (err error) {
	if header.Get("Authorization") != "" {
		return nil
	}
	token := k.Operator
	if buyer := header.Get("Shop-Buyer"); buyer != "" {
		header.Del("Shop-Buyer")
		if token, err = k.token(buyer); err != nil {
			return fmt.Errorf("token of %s: %w", buyer, err)
		}
	}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// token returns a buyer's, which is good for longer than a load test takes, also for a shop whose clock is wrong.
func (k *Keys) token(buyer string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if token := k.tokens[buyer]; token != "" {
		return token, nil
	}
	now := time.Now()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": buyer, "aud": "shop:buyer", "nbf": now.Add(-12 * time.Hour).Unix(), "exp": now.Add(24 * time.Hour).Unix(),
	}).SignedString([]byte(k.Secret))
	if err == nil {
		k.tokens[buyer] = token
	}
	return token, err
}
