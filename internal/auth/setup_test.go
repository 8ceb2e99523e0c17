package auth_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/auth"
)

const (
	secretText = "Vq3t6w9zC-F)J@NcRfUjXn2r5u8x/A?D"
	otherText  = "Zq4t7w!z%C*F-JaNdRgUkXp2s5v8y/B?"
)

// setup returns tokens of a shop with a secret.
func setup(t testing.TB, text string) *auth.Tokens {
	t.Helper()
	secret, err := auth.NewSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.New(secret)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

const goodHeader = `{"alg":"HS256","typ":"JWT"}`

// forge signs whatever it is given, as somebody could who has the secret. NOW,
// and NOW with a sign and seconds, stands for a date.
func forge(header, claims, secret string) string {
	signed := encode(header) + "." + encode(dated(claims))
	return signed + "." + encode(sum(signed, secret))
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func sum(signed, secret string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(signed))
	return string(h.Sum(nil))
}

// dated replaces NOW+60 by the date of a minute later.
func dated(claims string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(claims, "NOW")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		digits := len(rest) - len(strings.TrimLeft(rest, "+-0123456789"))
		offset, _ := strconv.ParseInt(rest[:digits], 10, 64)
		out.WriteString(strconv.FormatInt(time.Now().Unix()+offset, 10))
		claims = rest[digits:]
	}
}

// claimsBut returns the claims of a good token with one of them replaced, or left
// out if it is empty.
func claimsBut(name, value string) string {
	var fields []string
	for _, f := range [][2]string{{"sub", `"ann"`}, {"aud", `"shop:buyer"`}, {"nbf", "NOW"}, {"exp", "NOW+60"}, {"iat", "NOW"}} {
		if f[0] == name {
			f[1] = value
		}
		if f[1] != "" {
			fields = append(fields, strconv.Quote(f[0])+":"+f[1])
		}
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// wantRefused fails unless the error is ErrToken and the rule, and tells nothing
// of the token.
func wantRefused(t *testing.T, buyer string, err error, rule error) {
	t.Helper()
	if buyer != "" || !errors.Is(err, auth.ErrToken) || !errors.Is(err, rule) {
		t.Errorf("got buyer %q, %v; want %v", buyer, err, rule)
	}
}
