package auth_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/order"
)

// lasting is an end that no run of the fuzzer sees.
const lasting = "NOW+2592000"

// Whatever comes: no panic, and either a refusal, or the name of a buyer from a
// token that somebody with the secret has signed.
func FuzzTokens_Verify(f *testing.F) {
	tokens := setup(f, secretText)
	for _, c := range badTokens() {
		if len(c.token) <= 2*auth.MaxToken {
			f.Add(c.token)
		}
	}
	f.Add(with("exp", lasting))
	f.Fuzz(func(t *testing.T, token string) { checkVerified(t, tokens, token) })
}

// The same behind the signature, which a fuzzer cannot guess.
func FuzzTokens_Verify_signed(f *testing.F) {
	tokens := setup(f, secretText)
	f.Add(goodHeader, dated(claimsBut("exp", lasting)))
	for _, c := range badTokens() {
		parts := strings.Split(c.token, ".")
		if len(parts) != 3 || len(c.token) > auth.MaxToken {
			continue
		}
		header, err := base64.RawURLEncoding.DecodeString(parts[0])
		claims, err2 := base64.RawURLEncoding.DecodeString(parts[1])
		if errors.Join(err, err2) == nil {
			f.Add(string(header), string(claims))
		}
	}
	f.Fuzz(func(t *testing.T, header, claims string) {
		signed := encode(header) + "." + encode(claims)
		checkVerified(t, tokens, signed+"."+encode(sum(signed, secretText)))
	})
}

func checkVerified(t *testing.T, tokens *auth.Tokens, token string) {
	t.Helper()
	buyer, err := tokens.Verify(token)
	if err != nil {
		if buyer != "" || !errors.Is(err, auth.ErrToken) {
			t.Errorf("got %q, %v, want ErrToken and no buyer", buyer, err)
		}
		return
	}
	if err := order.CheckBuyer(buyer); err != nil {
		t.Errorf("got %v", err)
	}
	if len(token) > auth.MaxToken {
		t.Errorf("got %s from %d bytes, want at most %d", buyer, len(token), auth.MaxToken)
	}
	at := strings.LastIndex(token, ".")
	if want := encode(sum(token[:at], secretText)); token[at+1:] != want {
		t.Errorf("got %s from a token with signature %s, want %s", buyer, token[at+1:], want)
	}
}
