// Package auth mints and verifies buyers' bearer tokens, and keeps secrets: the operator's, and the one that signs these tokens.
//
// A token is a JWT (RFC 7519), signed with HMAC-SHA-256 by a secret that all instances of a shop share. Its claims are:
//
//	sub  the buyer's name
//	aud  "shop:buyer", so that a token for another purpose buys nothing
//	nbf  the first second in which the token is valid, since 1970
//	exp  the first second in which the token is not valid any more; at most MaxLifetime after nbf
//	iat  when the token was made; optional
//
// Other claims are ignored. A token that repeats a name, or writes one of these names in another case, is refused. Clocks may
// differ by Leeway. A token is always verified as HS256, whatever its header asks for (RFC 8725).
package auth

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	strictjson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// New returns Tokens with this secret. It panics on the zero Secret, because every client could sign with it.
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

// Mint returns a token that is valid from now on for lifetime, and the time of its end. lifetime is MinLifetime to
// MaxLifetime; any other is an error. Times are whole seconds, so that the token may expire up to a second early.
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
		return "", fmt.Errorf("%w: it has %d bytes: at most %d are allowed", ErrToken, len(token), MaxToken)
	}
	var c claims
	parsed, err := t.parser.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return t.secret, nil })
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrToken, explain(err))
	}
	if header, _, _ := strings.Cut(token, "."); header != usualHeader {
		if err := checkHeader(header); err != nil {
			return "", fmt.Errorf("%w: %w", ErrToken, err)
		}
	}
	if _, given := parsed.Header["crit"]; given { // RFC 7515: refuse unknown extensions
		return "", fmt.Errorf("%w: its header crit asks for an extension", ErrToken)
	}
	if lifetime := c.ExpiresAt.Sub(c.NotBefore.Time); lifetime <= 0 || lifetime > MaxLifetime {
		return "", fmt.Errorf("%w: its exp is not within 30 days after its nbf", ErrToken)
	}
	return c.Subject, nil
}

// usualHeader is {"alg":"HS256","typ":"JWT"}, as Mint and most libraries write it. It needs no check.
const usualHeader = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"

// claims are the claims of a token. Decoding refuses a repeated name, of which jwt would take the last, and the name Sub, which
// jwt would take for sub.
type claims struct {
	jwt.RegisteredClaims
	Others map[string]jsontext.Value `json:",embed"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *claims) UnmarshalJSON(text []byte) error {
	type exact claims // without this method
	err := strictjson.Unmarshal(text, (*exact)(c))
	if errors.Is(err, jsontext.ErrDuplicateName) || err == nil && inAnotherCase(c.Others, "sub", "aud", "nbf", "exp", "iat") {
		return errNames
	}
	return err
}

// checkHeader returns errNames if a header repeats a name, or writes alg or crit in another case.
func checkHeader(segment string) error {
	var members map[string]jsontext.Value
	text, err := base64.RawURLEncoding.DecodeString(segment)
	if err != nil || strictjson.Unmarshal(text, &members) != nil || inAnotherCase(members, "alg", "crit") {
		return errNames
	}
	return nil
}

var errNames = errors.New("its header or its claims repeat a name, or write it in another case")

func inAnotherCase(members map[string]jsontext.Value, names ...string) bool {
	for given := range members {
		if slices.ContainsFunc(names, func(name string) bool { return name != given && strings.EqualFold(name, given) }) {
			return true
		}
	}
	return false
}

// explain replaces the parser's error, which may quote the token, by the known error that the parser wrapped.
func explain(err error) error {
	for _, known := range []error{
		errNames, jwt.ErrTokenSignatureInvalid, jwt.ErrTokenRequiredClaimMissing, jwt.ErrTokenInvalidAudience,
		jwt.ErrTokenExpired, jwt.ErrTokenNotValidYet, jwt.ErrTokenUsedBeforeIssued,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	return jwt.ErrTokenMalformed
}
