package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// claims are those of a token that count. Dates are nil where a token has none.
type claims struct {
	subject                      string
	audience                     jwt.ClaimStrings
	notBefore, expires, issuedAt *jwt.NumericDate
}

// claimError is a claim that is not what it should be. It quotes nothing.
type claimError struct{ how string }

func (e *claimError) Error() string { return e.how }

// UnmarshalJSON reads the claims by their exact names: encoding/json would take
// "Sub" for "sub", and for a date what overflows one.
func (c *claims) UnmarshalJSON(object []byte) error {
	fields, err := readObject(object)
	if err != nil {
		return err
	}
	if raw, given := fields["sub"]; given {
		var ok bool
		if c.subject, ok = text(raw); !ok {
			return &claimError{"sub is not a string"}
		}
	}
	if raw, given := fields["aud"]; given && json.Unmarshal(raw, &c.audience) != nil {
		return &claimError{"aud is neither a string nor a list of strings"}
	}
	for _, date := range []struct {
		name string
		into **jwt.NumericDate
	}{{"nbf", &c.notBefore}, {"exp", &c.expires}, {"iat", &c.issuedAt}} {
		raw, given := fields[date.name]
		if !given {
			continue
		}
		if *date.into, err = seconds(raw); err != nil {
			return &claimError{date.name + " is not a date: want whole seconds since 1970"}
		}
	}
	return nil
}

// dateRule leaves no room for overflow, and none for two spellings of a date.
var dateRule = regexp.MustCompile(`^(0|[1-9][0-9]{0,11})$`)

func seconds(raw json.RawMessage) (*jwt.NumericDate, error) {
	if !dateRule.Match(raw) {
		return nil, errors.New("not a date")
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return nil, err
	}
	return jwt.NewNumericDate(time.Unix(n, 0)), nil
}

// Validate is called by the library beside its own checks.
func (c *claims) Validate() error {
	switch {
	case c.expires == nil:
		return &claimError{"exp is missing"}
	case c.notBefore == nil:
		return &claimError{"nbf is missing"}
	case !slices.Contains(c.audience, Audience):
		return &claimError{fmt.Sprintf("aud is not %q", Audience)}
	}
	switch lifetime := c.expires.Sub(c.notBefore.Time); {
	case lifetime <= 0:
		return &claimError{"exp is not after nbf"}
	case lifetime > MaxLifetime:
		return &claimError{"exp is too long after nbf"}
	}
	return nil
}

// What the library asks claims for.

// GetExpirationTime returns exp.
func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.expires, nil }

// GetNotBefore returns nbf.
func (c *claims) GetNotBefore() (*jwt.NumericDate, error) { return c.notBefore, nil }

// GetIssuedAt returns iat.
func (c *claims) GetIssuedAt() (*jwt.NumericDate, error) { return c.issuedAt, nil }

// GetAudience returns aud.
func (c *claims) GetAudience() (jwt.ClaimStrings, error) { return c.audience, nil }

// GetIssuer returns nothing: who has the secret is the issuer.
func (c *claims) GetIssuer() (string, error) { return "", nil }

// GetSubject returns sub.
func (c *claims) GetSubject() (string, error) { return c.subject, nil }
