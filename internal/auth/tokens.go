// Package auth mints and verifies the bearer tokens by which buyers are known, and keeps secrets: the one that signs
// tokens, and the operator's.
//
// A token is a JWT (RFC 7519), signed with HMAC-SHA-256 by a secret that all instances of a shop share. It names the
// buyer and has these claims:
//
//	sub  the buyer's name
//	aud  "shop:buyer", so that a token for another purpose buys nothing
//	nbf  not good before; in seconds since 1970
//	exp  not good from then on; at most MaxLifetime after nbf
//	iat  when it was made; may be left out
//
// Other claims are ignored. Clocks may differ by Leeway. The algorithm is pinned: whatever the header of a token asks
// for, it is verified as HS256 (RFC 8725).
package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Limits of a token.
const (
	MaxToken    = 2048 // bytes
	MinLifetime = time.Second
	MaxLifetime = 30 * 24 * time.Hour
	Leeway      = 5 * time.Second // by which clocks may differ

	audience = "shop:buyer"
)

// ErrToken is wrapped by every error of Verify, which says what is wrong with the token and contains no part of it.
var ErrToken = errors.New("bad token")

// Tokens mints and verifies tokens with one secret. It may be used by many goroutines at once.
type Tokens struct {
	secret []byte
	parser *jwt.Parser
}

// New returns Tokens with this secret. It panics on the zero Secret, with which every client could sign.
func New(secret Secret) *Tokens {
	if secret.IsZero() {
		panic("auth: there is no secret")
	}
	return &Tokens{secret: []byte(secret.text), parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Name}),
		jwt.WithStrictDecoding(),
		jwt.WithExpirationRequired(),
		jwt.WithNotBeforeRequired(),
		jwt.WithIssuedAt(),
		jwt.WithAudience(audience),
		jwt.WithLeeway(Leeway),
	)}
}

// Mint returns a token that is valid from now on for lifetime, and when it expires. Any lifetime but MinLifetime to
// MaxLifetime is an error. Times are whole seconds, so that it may expire up to a second early.
func (t *Tokens) Mint(buyer string, lifetime time.Duration) (token string, expires time.Time, err error) {
	if lifetime < MinLifetime || lifetime > MaxLifetime {
		return "", time.Time{}, fmt.Errorf("lifetime of a token: %v: want %v to %dh", lifetime, MinLifetime, MaxLifetime/time.Hour)
	}
	now := time.Now().UTC().Truncate(time.Second)
	expires = now.Add(lifetime).Truncate(time.Second)
	token, err = jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Subject:   buyer,
		Audience:  jwt.ClaimStrings{audience},
		NotBefore: jwt.NewNumericDate(now),
		IssuedAt:  jwt.NewNumericDate(now),
		ExpiresAt: jwt.NewNumericDate(expires),
	}).SignedString(t.secret)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign a token: %w", err)
	}
	return token, expires, nil
}

// Verify returns the buyer whom a valid token names, or an ErrToken.
func (t *Tokens) Verify(token string) (buyer string, err error) {
	if len(token) > MaxToken {
		return "", fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrToken, len(token), MaxToken)
	}
	var c jwt.RegisteredClaims
	parsed, err := t.parser.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return t.secret, nil })
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrToken, explain(err))
	}
	if _, given := parsed.Header["crit"]; given { // RFC 7515: an extension that is not understood
		return "", fmt.Errorf("%w: crit asks for an extension", ErrToken)
	}
	if lifetime := c.ExpiresAt.Sub(c.NotBefore.Time); lifetime <= 0 || lifetime > MaxLifetime {
		return "", fmt.Errorf("%w: its exp is not within 30 days after its nbf", ErrToken)
	}
	return c.Subject, nil
}

// explain replaces the parser's error, which may quote the token, by the known error that it wraps.
func explain(err error) error {
	for _, known := range []error{
		jwt.ErrTokenSignatureInvalid, jwt.ErrTokenRequiredClaimMissing, jwt.ErrTokenInvalidAudience,
		jwt.ErrTokenExpired, jwt.ErrTokenNotValidYet, jwt.ErrTokenUsedBeforeIssued,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	return jwt.ErrTokenMalformed
}
