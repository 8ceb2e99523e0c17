package auth_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/shop/internal/auth"
)

type badToken struct {
	token string
	rule  error
}

// Three ways to forge: the header alone, the claims alone, one claim alone.

func header(h string) string         { return forge(h, claimsBut("", ""), secretText) }
func payload(c string) string        { return forge(goodHeader, c, secretText) }
func with(name, value string) string { return payload(claimsBut(name, value)) }

// badTokens is made inside of a test, whose clock counts.
func badTokens() map[string]badToken {
	good := payload(claimsBut("", ""))
	parts := strings.Split(good, ".")
	table := map[string]badToken{
		"empty":                   {"", auth.ErrMalformed},
		"a word":                  {"ann", auth.ErrMalformed},
		"two dots":                {"..", auth.ErrMalformed},
		"two parts":               {parts[0] + "." + parts[1], auth.ErrMalformed},
		"four parts":              {good + "." + parts[2], auth.ErrMalformed},
		"five parts":              {strings.Repeat("a.", 4) + "a", auth.ErrMalformed},
		"no header":               {"." + parts[1] + "." + parts[2], auth.ErrMalformed},
		"no claims":               {parts[0] + ".." + parts[2], auth.ErrMalformed},
		"no signature":            {parts[0] + "." + parts[1] + ".", auth.ErrSignature},
		"with its scheme":         {"Bearer " + good, auth.ErrMalformed},
		"blank before":            {" " + good, auth.ErrMalformed},
		"line break after":        {good + "\n", auth.ErrMalformed},
		"line break in header":    {good[:5] + "\n" + good[5:], auth.ErrMalformed},
		"line break in signature": {good[:len(good)-5] + "\r\n" + good[len(good)-5:], auth.ErrMalformed},
		"NUL":                     {good[:5] + "\x00" + good[5:], auth.ErrMalformed},
		"not ASCII":               {"é" + good, auth.ErrMalformed},
		"invalid UTF-8 outside":   {"\xff" + good, auth.ErrMalformed},
		"padding":                 {parts[0] + "." + parts[1] + "." + parts[2] + "=", auth.ErrMalformed},
		"base64 of mail":          {"ey+/." + parts[1] + "." + parts[2], auth.ErrMalformed},
		"one letter too many":     {parts[0] + "." + parts[1] + "A." + parts[2], auth.ErrMalformed},
		"oversize":                {strings.Repeat("a", auth.MaxToken+1), auth.ErrTooLong},
		"oversize, signed":        {with("jti", "") + strings.Repeat("a", auth.MaxToken), auth.ErrTooLong},
		"a megabyte of dots":      {strings.Repeat(".", 1<<20), auth.ErrTooLong},

		"header is no JSON":      {header(`alg`), auth.ErrMalformed},
		"header is a list":       {header(`["HS256"]`), auth.ErrMalformed},
		"header is null":         {header(`null`), auth.ErrMalformed},
		"header ends early":      {header(`{"alg":"HS256"`), auth.ErrMalformed},
		"header twice":           {header(goodHeader + goodHeader), auth.ErrMalformed},
		"two algorithms":         {header(`{"alg":"none","alg":"HS256"}`), auth.ErrMalformed},
		"two, one escaped":       {header(`{"alg":"HS256","\u0061lg":"none"}`), auth.ErrMalformed},
		"header invalid UTF-8":   {header("{\"alg\":\"HS256\",\"x\":\"\xff\"}"), auth.ErrMalformed},
		"other type":             {header(`{"alg":"HS256","typ":"at+jwt"}`), auth.ErrMalformed},
		"type is a number":       {header(`{"alg":"HS256","typ":1}`), auth.ErrMalformed},
		"critical extension":     {header(`{"alg":"HS256","crit":["b64"],"b64":false}`), auth.ErrMalformed},
		"critical, empty":        {header(`{"alg":"HS256","crit":[]}`), auth.ErrMalformed},
		"header deep":            {header(`{"alg":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`), auth.ErrAlgorithm},
		"none, unsigned":         {encode(`{"alg":"none"}`) + "." + parts[1] + ".", auth.ErrAlgorithm},
		"no algorithm":           {header(`{"typ":"JWT"}`), auth.ErrAlgorithm},
		"algorithm is null":      {header(`{"alg":null}`), auth.ErrAlgorithm},
		"algorithm is a number":  {header(`{"alg":256}`), auth.ErrAlgorithm},
		"algorithm is a list":    {header(`{"alg":["HS256"]}`), auth.ErrAlgorithm},
		"algorithm with capital": {header(`{"Alg":"HS256"}`), auth.ErrAlgorithm},
		"encrypted":              {"a.b.c.d.e", auth.ErrMalformed},

		"other secret":           {forge(goodHeader, claimsBut("", ""), otherText), auth.ErrSignature},
		"empty secret":           {forge(goodHeader, claimsBut("", ""), ""), auth.ErrSignature},
		"its own key":            {forge(`{"alg":"HS256","jwk":{"kty":"oct","k":"YQ"}}`, claimsBut("", ""), "a"), auth.ErrSignature},
		"key by a path":          {forge(`{"alg":"HS256","kid":"/dev/null"}`, claimsBut("", ""), ""), auth.ErrSignature},
		"claims of another":      {parts[0] + "." + strings.Split(with("sub", `"bob"`), ".")[1] + "." + parts[2], auth.ErrSignature},
		"header of another":      {encode(`{"alg":"HS256"}`) + "." + parts[1] + "." + parts[2], auth.ErrSignature},
		"signature cut":          {good[:len(good)-4], auth.ErrSignature},
		"signature of no length": {parts[0] + "." + parts[1] + ".AA", auth.ErrSignature},

		"claims are no JSON":    {payload(`ann`), auth.ErrMalformed},
		"claims are a list":     {payload(`[]`), auth.ErrMalformed},
		"claims are null":       {payload(`null`), auth.ErrMalformed},
		"claims twice":          {payload(claimsBut("", "") + `{}`), auth.ErrMalformed},
		"claims and garbage":    {payload(claimsBut("", "") + `x`), auth.ErrMalformed},
		"sub twice":             {payload(`{"sub":"bob",` + claimsBut("", "")[1:]), auth.ErrMalformed},
		"exp twice":             {payload(`{"exp":1,` + claimsBut("", "")[1:]), auth.ErrMalformed},
		"sub twice, escaped":    {payload(`{"su\u0062":"bob",` + claimsBut("", "")[1:]), auth.ErrMalformed},
		"claims invalid UTF-8":  {with("sub", "\"ann\xff\""), auth.ErrMalformed},
		"control char raw":      {with("sub", "\"an\nn\""), auth.ErrMalformed},
		"exp NaN":               {with("exp", "NaN"), auth.ErrMalformed},
		"exp Infinity":          {with("exp", "Infinity"), auth.ErrMalformed},
		"exp octal":             {with("exp", "0777"), auth.ErrMalformed},
		"no claim at all":       {payload(`{}`), auth.ErrClaims},
		"no exp":                {with("exp", ""), auth.ErrClaims},
		"no nbf":                {with("nbf", ""), auth.ErrClaims},
		"no aud":                {with("aud", ""), auth.ErrClaims},
		"operator's aud":        {with("aud", `"shop:operator"`), auth.ErrClaims},
		"aud empty list":        {with("aud", `[]`), auth.ErrClaims},
		"aud a number":          {with("aud", `1`), auth.ErrClaims},
		"aud null":              {with("aud", `null`), auth.ErrClaims},
		"Exp with capital":      {payload(strings.Replace(claimsBut("", ""), `"exp"`, `"Exp"`, 1)), auth.ErrClaims},
		"exp 1e400":             {with("exp", "1e400"), auth.ErrClaims},
		"exp -1e400":            {with("exp", "-1e400"), auth.ErrClaims},
		"exp 1e18":              {with("exp", "1e18"), auth.ErrClaims},
		"exp 20 digits":         {with("exp", "99999999999999999999"), auth.ErrClaims},
		"exp in milliseconds":   {with("exp", "1700000000000"), auth.ErrClaims},
		"exp far":               {with("exp", "NOW+2592001"), auth.ErrClaims},
		"exp at nbf":            {with("exp", "NOW"), auth.ErrClaims},
		"exp before nbf":        {with("exp", "NOW-1"), auth.ErrClaims},
		"exp fraction":          {with("exp", "NOW+60.5"), auth.ErrClaims},
		"exp negative":          {with("exp", "-1"), auth.ErrClaims},
		"exp minus zero":        {with("exp", "-0"), auth.ErrClaims},
		"exp text":              {with("exp", `"NOW+60"`), auth.ErrClaims},
		"exp null":              {with("exp", "null"), auth.ErrClaims},
		"exp true":              {with("exp", "true"), auth.ErrClaims},
		"exp object":            {with("exp", "{}"), auth.ErrClaims},
		"nbf 1e400":             {with("nbf", "1e400"), auth.ErrClaims},
		"nbf text":              {with("nbf", `"soon"`), auth.ErrClaims},
		"iat a list":            {with("iat", "[NOW]"), auth.ErrClaims},
		"expired":               {payload(strings.Replace(claimsBut("nbf", "NOW-60"), "NOW+60", "NOW-5", 1)), auth.ErrExpired},
		"expired long ago":      {payload(strings.Replace(claimsBut("nbf", "1"), "NOW+60", "2", 1)), auth.ErrExpired},
		"not yet":               {with("nbf", "NOW+6"), auth.ErrNotYet},
		"made in the future":    {with("iat", "NOW+6"), auth.ErrNotYet},
		"no sub":                {with("sub", ""), auth.ErrBuyer},
		"sub empty":             {with("sub", `""`), auth.ErrBuyer},
		"sub blank":             {with("sub", `" "`), auth.ErrBuyer},
		"sub with line break":   {with("sub", `"ann\n"`), auth.ErrBuyer},
		"sub with NUL":          {with("sub", `"ann\u0000"`), auth.ErrBuyer},
		"sub turned around":     {with("sub", `"\u202enna"`), auth.ErrBuyer},
		"sub half a surrogate":  {with("sub", `"ann\ud800"`), auth.ErrBuyer},
		"sub a path":            {with("sub", `"../bob"`), auth.ErrBuyer},
		"sub of 65 letters":     {with("sub", `"`+strings.Repeat("a", 65)+`"`), auth.ErrBuyer},
		"sub look-alike":        {with("sub", `"аnn"`), auth.ErrBuyer},
		"sub null":              {with("sub", `null`), auth.ErrClaims},
		"sub a number":          {with("sub", `1`), auth.ErrClaims},
		"sub a list":            {with("sub", `["ann"]`), auth.ErrClaims},
		"Sub with capital":      {payload(strings.Replace(claimsBut("", ""), `"sub"`, `"SUB"`, 1)), auth.ErrBuyer},
		"jti makes it too long": {payload(strings.Replace(claimsBut("", ""), "{", `{"jti":"`+strings.Repeat("a", 1600)+`",`, 1)), auth.ErrTooLong},
	}
	for _, algorithm := range []string{"none", "None", "NONE", "nOnE", "", "hs256", "HS256 ", "HS384", "HS512", "RS256", "PS256", "ES256", "EdDSA", "dir"} {
		table["algorithm "+algorithm] = badToken{header(`{"alg":"` + algorithm + `"}`), auth.ErrAlgorithm}
	}
	return table
}

// "Verify's errors all match ErrToken, and one of the sentinels that says which
// rule was broken. They never contain the token or a part of it."
func TestTokens_Verify_refuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens, table := setup(t, secretText), badTokens()
		t.Logf("%d bad tokens", len(table))
		for name, c := range table {
			_, _ = tokens.Verify(c.token) // a token that was seen is no better the next time
			buyer, err := tokens.Verify(c.token)
			if buyer != "" || !errors.Is(err, auth.ErrToken) || !errors.Is(err, c.rule) {
				t.Errorf("%s: got buyer %q, %v; want %v", name, buyer, err, c.rule)
				continue
			}
			for part := range strings.SplitSeq(c.token, ".") {
				if len(part) > 4 && strings.Contains(err.Error(), part) {
					t.Errorf("%s: got %v, want nothing of the token in it", name, err)
				}
			}
		}
	})
}

// "One of the sentinels that says which rule was broken", and of a claim its name.
func TestTokens_Verify_claims(t *testing.T) {
	t.Parallel()
	tokens := setup(t, secretText)
	for name, c := range map[string]struct{ token, want string }{
		"no exp":    {with("exp", ""), "exp is missing"},
		"no nbf":    {with("nbf", ""), "nbf is missing"},
		"no aud":    {with("aud", ""), `aud is not "shop:buyer"`},
		"other aud": {with("aud", `["shop:operator"]`), `aud is not "shop:buyer"`},
	} {
		if _, err := tokens.Verify(c.token); err == nil || !strings.HasSuffix(err.Error(), ": "+c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
