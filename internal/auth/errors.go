package auth

import (
	"errors"
	"fmt"
)

// ErrToken is matched by every error of Verify: whoever came with that token is
// nobody. The others say which rule it broke.
var (
	ErrToken     = errors.New("bad token")
	ErrTooLong   = errors.New("it is too long")
	ErrMalformed = errors.New("it is no JWT")
	ErrAlgorithm = errors.New("its algorithm is not HS256")
	ErrSignature = errors.New("its signature is wrong")
	ErrClaims    = errors.New("its claims are wrong")
	ErrExpired   = errors.New("it has expired")
	ErrNotYet    = errors.New("it is not good yet")
	ErrBuyer     = errors.New("its sub is no buyer's name")
)

// ErrSecret is matched by every error about a secret. The others say which rule
// it breaks; ErrSecretFile is about the file that it is in.
var (
	ErrSecret      = errors.New("secret")
	ErrSecretNone  = errors.New("there is none")
	ErrSecretShort = errors.New("too short")
	ErrSecretLong  = errors.New("too long")
	ErrSecretText  = errors.New("not plain text")
	ErrSecretKnown = errors.New("published")
	ErrSecretPlain = errors.New("too plain")
	ErrSecretFile  = errors.New("file")
)

// ErrLifetime means that a token was to live for too short or too long.
var ErrLifetime = errors.New("lifetime of a token")

// refuse says which rule a token broke, and how if that is known.
func refuse(rule error, how string) error {
	if how == "" {
		return fmt.Errorf("%w: %w", ErrToken, rule)
	}
	return fmt.Errorf("%w: %w: %s", ErrToken, rule, how)
}
