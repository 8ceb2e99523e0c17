package auth_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/order"
)

// A token names its buyer until it ends, with the leeway and not a moment longer.
func TestTokens_lifetime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := setup(t, secretText)
		token, expires, err := tokens.Mint("ann", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if want := time.Now().Add(time.Minute); !expires.Equal(want) {
			t.Errorf("got a token until %v, want %v", expires, want)
		}
		time.Sleep(time.Minute + auth.Leeway - time.Nanosecond) // the bubble's clock
		if buyer, err := tokens.Verify(token); buyer != "ann" || err != nil {
			t.Errorf("got %q, %v at the end, want ann", buyer, err)
		}
		time.Sleep(time.Nanosecond)
		buyer, err := tokens.Verify(token)
		wantRefused(t, buyer, err, auth.ErrExpired)
	})
}

// "Clocks may differ by Leeway": that of the instance that minted may be ahead.
func TestTokens_leeway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := setup(t, secretText)
		early := payload(strings.ReplaceAll(claimsBut("nbf", "NOW+10"), `"iat":NOW`, `"iat":NOW+10`))
		buyer, err := tokens.Verify(early)
		wantRefused(t, buyer, err, auth.ErrNotYet)
		time.Sleep(10*time.Second - auth.Leeway)
		if buyer, err := tokens.Verify(early); buyer != "ann" || err != nil {
			t.Errorf("got %q, %v, want ann", buyer, err)
		}
	})
}

// What other issuers write differently, within RFC 7519, is understood.
func TestTokens_Verify_accepts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := setup(t, secretText)
		for name, token := range map[string]string{
			"plain":           payload(claimsBut("", "")),
			"no iat":          with("iat", ""),
			"no typ":          header(`{"alg":"HS256"}`),
			"small typ":       header(`{"typ":"jwt","alg":"HS256"}`),
			"with kid":        header(`{"alg":"HS256","kid":"2026"}`),
			"blanks":          payload("\n " + claimsBut("", "") + "\t"),
			"several aud":     with("aud", `["shop:operator","shop:buyer"]`),
			"escaped sub":     with("sub", `"\u0061nn"`),
			"another claim":   payload(`{"jti":"1","roles":{"a":[null,1e400]},` + claimsBut("", "")[1:]),
			"longest allowed": with("exp", "NOW+2592000"),
		} {
			if buyer, err := tokens.Verify(token); buyer != "ann" || err != nil {
				t.Errorf("%s: got %q, %v, want ann", name, buyer, err)
			}
		}
	})
}

func TestTokens_Mint_refuses(t *testing.T) {
	t.Parallel()
	tokens := setup(t, secretText)
	for _, buyer := range []string{"", " ", "ann\n", "-ann", "ännchen", strings.Repeat("a", 65)} {
		if _, _, err := tokens.Mint(buyer, time.Hour); !errors.Is(err, order.ErrBuyer) {
			t.Errorf("buyer %q: got %v, want ErrBuyer", buyer, err)
		}
	}
	for _, lifetime := range []time.Duration{-time.Hour, 0, auth.MinLifetime - 1, auth.MaxLifetime + 1} {
		if _, _, err := tokens.Mint("ann", lifetime); !errors.Is(err, auth.ErrLifetime) {
			t.Errorf("lifetime %v: got %v, want ErrLifetime", lifetime, err)
		}
	}
	for _, lifetime := range []time.Duration{auth.MinLifetime, auth.MaxLifetime} {
		token, _, err := tokens.Mint("ann.b_c@d-e", lifetime)
		if err != nil || len(token) > auth.MaxToken {
			t.Errorf("lifetime %v: got %d bytes, %v, want a token", lifetime, len(token), err)
		}
	}
}

// "Signed by a secret that all instances of a shop share": by another one it is
// worth nothing.
func TestTokens_Verify_otherInstance(t *testing.T) {
	t.Parallel()
	token, _, err := setup(t, secretText).Mint("ann", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if buyer, err := setup(t, secretText).Verify(token); buyer != "ann" || err != nil {
		t.Errorf("got %q, %v, want ann", buyer, err)
	}
	buyer, err := setup(t, otherText).Verify(token)
	wantRefused(t, buyer, err, auth.ErrSignature)
}

// "It may be used concurrently."
func TestTokens_concurrent(t *testing.T) {
	t.Parallel()
	tokens := setup(t, secretText)
	var all sync.WaitGroup
	for _, name := range []string{"ann", "bob", "cat", "dan"} {
		all.Go(func() {
			for range 50 {
				token, _, err := tokens.Mint(name, time.Hour)
				if err != nil {
					t.Error(err)
				}
				if buyer, err := tokens.Verify(token); buyer != name || err != nil {
					t.Errorf("got %q, %v, want %s", buyer, err, name)
				}
			}
		})
	}
	all.Wait()
}

// "The zero value signs nothing."
func TestNew_noSecret(t *testing.T) {
	t.Parallel()
	if _, err := auth.New(auth.Secret{}); !errors.Is(err, auth.ErrSecretNone) {
		t.Errorf("got %v, want ErrSecretNone", err)
	}
}
