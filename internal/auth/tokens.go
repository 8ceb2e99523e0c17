package auth

import (
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"example.com/shop/internal/order"
)

// Limits of a token.
const (
	MaxToken    = 2048 // bytes
	MinLifetime = time.Second
	MaxLifetime = 30 * 24 * time.Hour
	Leeway      = 5 * time.Second // by which clocks may differ
)

// Audience is the aud of a buyer's token.
const Audience = "shop:buyer"

// Tokens mints and verifies tokens with one secret. It may be used concurrently.
type Tokens struct {
	secret    Secret
	parser    *jwt.Parser
	validator *jwt.Validator // what of the parser looks at the claims
	known     known
}

// New returns what works with a secret, or ErrSecretNone for the zero Secret.
func New(secret Secret) (*Tokens, error) {
	if secret.IsZero() {
		return nil, fmt.Errorf("%w: %w", ErrSecret, ErrSecretNone)
	}
	rules := []jwt.ParserOption{
		jwt.WithValidMethods([]string{algorithm}),
		jwt.WithStrictDecoding(),
		jwt.WithExpirationRequired(),
		jwt.WithNotBeforeRequired(),
		jwt.WithIssuedAt(),
		jwt.WithAudience(Audience),
		jwt.WithLeeway(Leeway),
	}
	return &Tokens{secret: secret, parser: jwt.NewParser(rules...), validator: jwt.NewValidator(rules...)}, nil
}

// Mint returns a token that is good from now on, for lifetime: MinLifetime to
// MaxLifetime, or ErrLifetime. Dates are whole seconds, so that it may end up to
// one earlier. What is no buyer's name is order.ErrBuyer.
func (t *Tokens) Mint(buyer string, lifetime time.Duration) (token string, expires time.Time, err error) {
	if err := order.CheckBuyer(buyer); err != nil {
		return "", time.Time{}, err
	}
	if lifetime < MinLifetime || lifetime > MaxLifetime {
		return "", time.Time{}, fmt.Errorf("%w: %v: want %v to %dh", ErrLifetime, lifetime, MinLifetime, MaxLifetime/time.Hour)
	}
	now := time.Now().UTC().Truncate(time.Second)
	expires = now.Add(lifetime).Truncate(time.Second)
	token, err = jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Subject:   buyer,
		Audience:  jwt.ClaimStrings{Audience},
		NotBefore: jwt.NewNumericDate(now),
		IssuedAt:  jwt.NewNumericDate(now),
		ExpiresAt: jwt.NewNumericDate(expires),
	}).SignedString([]byte(t.secret.key))
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign a token: %w", err)
	}
	return token, expires, nil
}
