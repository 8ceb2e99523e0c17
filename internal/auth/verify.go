package auth

import (
	"errors"
	"fmt"

	"github.com/golang-jwt/jwt/v5"

	"example.com/shop/internal/order"
)

// Verify returns the buyer whom a token names, or an error that matches ErrToken
// and tells which rule the token broke. Of a token that was good before, its dates
// are looked at again and nothing else.
func (t *Tokens) Verify(token string) (buyer string, err error) {
	if len(token) > MaxToken {
		return "", refuse(ErrTooLong, fmt.Sprintf("%d bytes, at most %d are allowed", len(token), MaxToken))
	}
	sum := sumOf(token)
	c := t.known.get(sum)
	if c != nil {
		err = t.validator.Validate(c)
	} else if c, err = t.read(token); err == nil {
		t.known.add(sum, c)
	}
	if err != nil {
		return "", translate(err)
	}
	return c.subject, nil
}

// read returns the claims of a token that is good now.
func (t *Tokens) read(token string) (*claims, error) {
	if err := checkShape(token); err != nil {
		return nil, err
	}
	var c claims
	if _, err := t.parser.ParseWithClaims(token, &c, t.key); err != nil {
		return nil, err
	}
	if order.CheckBuyer(c.subject) != nil {
		return nil, refuse(ErrBuyer, "")
	}
	return &c, nil
}

// key gives the parser the one key there is, whatever the token asks for.
func (t *Tokens) key(*jwt.Token) (any, error) { return []byte(t.secret.key), nil }

// translate keeps the library's errors, which quote what was sent, to itself.
func translate(err error) error {
	if errors.Is(err, ErrToken) {
		return err // it is one of ours
	}
	if broken := (*claimError)(nil); errors.As(err, &broken) {
		return refuse(ErrClaims, broken.how)
	}
	for _, row := range []struct{ found, rule error }{
		{jwt.ErrTokenSignatureInvalid, ErrSignature},
		{jwt.ErrTokenRequiredClaimMissing, ErrClaims},
		{jwt.ErrTokenInvalidAudience, ErrClaims},
		{jwt.ErrTokenExpired, ErrExpired},
		{jwt.ErrTokenNotValidYet, ErrNotYet},
		{jwt.ErrTokenUsedBeforeIssued, ErrNotYet},
	} {
		if errors.Is(err, row.found) {
			return refuse(row.rule, "")
		}
	}
	return refuse(ErrMalformed, "")
}
