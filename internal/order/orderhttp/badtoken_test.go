package orderhttp_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const otherSecret = "Zq4t7w!z%C*F-JaNdRgUkXp2s5v8y/B?"

// forged returns the header with a good token of ann's of which something was
// changed before it was signed.
func forged(t *testing.T, method jwt.SigningMethod, key any, change func(header, claims map[string]any)) string {
	t.Helper()
	now := time.Now()
	claims := jwt.MapClaims{
		"sub": "ann", "aud": "shop:buyer", "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	token := jwt.NewWithClaims(method, claims)
	if change != nil {
		change(token.Header, claims)
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return "Authorization: Bearer " + text
}

// badTokens are shown by someone who would buy, look, pay or cancel: each is asked
// with the next call. "Without a good one it is a 401 that reads nothing else of
// the request."
func badTokens(t *testing.T) map[string]badRequest {
	t.Helper()
	signed := func(name string, value any) string {
		return forged(t, jwt.SigningMethodHS256, []byte(shopSecret), func(_, claims map[string]any) {
			if claims[name] = value; value == nil {
				delete(claims, name)
			}
		})
	}
	headed := func(name string, value any) string {
		return forged(t, jwt.SigningMethodHS256, []byte(shopSecret), func(header, _ map[string]any) { header[name] = value })
	}
	good := shows(t, shopSecret, "ann")
	parts := strings.Split(good, ".")
	hour := int64(time.Hour / time.Second)
	table := map[string]badRequest{}
	for name, c := range map[string]struct {
		headers []string
		slug    string
	}{
		"nothing":          {nil, "no-token"},
		"a name":           {[]string{"Shop-Buyer: ann"}, "no-token"},
		"empty":            {[]string{"Authorization: "}, "no-token"},
		"scheme alone":     {[]string{"Authorization: Bearer"}, "no-token"},
		"empty token":      {[]string{"Authorization: Bearer "}, "no-token"},
		"password":         {[]string{"Authorization: Basic YW5uOmFubg=="}, "no-token"},
		"token alone":      {[]string{strings.Replace(good, "Bearer ", "", 1)}, "no-token"},
		"twice":            {[]string{good, good}, "no-token"},
		"good, then bad":   {[]string{good, "Authorization: Bearer x"}, "no-token"},
		"in a cookie":      {[]string{"Cookie: token=" + strings.TrimPrefix(good, "Authorization: Bearer ")}, "no-token"},
		"a word":           {[]string{"Authorization: Bearer ann"}, "bad-token"},
		"two blanks":       {[]string{strings.Replace(good, "Bearer ", "Bearer  ", 1)}, "bad-token"},
		"two in one":       {[]string{good + ", " + good}, "bad-token"},
		"control char":     {[]string{good + "\x01"}, "bad-token"},
		"not UTF-8":        {[]string{good + "\xff"}, "bad-token"},
		"cut":              {[]string{good[:len(good)-3]}, "bad-token"},
		"oversize":         {[]string{"Authorization: Bearer " + strings.Repeat("a", 10_000)}, "bad-token"},
		"cut, and a name":  {[]string{good[:len(good)-3], "Shop-Buyer: ann"}, "bad-token"},
		"unsigned":         {[]string{parts[0] + "." + parts[1] + "."}, "bad-token"},
		"other secret":     {[]string{shows(t, otherSecret, "ann")}, "bad-token"},
		"claims of bob's":  {[]string{parts[0] + "." + strings.Split(signed("sub", "bob"), ".")[1] + "." + parts[2]}, "bad-token"},
		"algorithm none":   {[]string{forged(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil)}, "bad-token"},
		"algorithm HS512":  {[]string{forged(t, jwt.SigningMethodHS512, []byte(shopSecret), nil)}, "bad-token"},
		"critical":         {[]string{headed("crit", []string{"b64"})}, "bad-token"},
		"of another type":  {[]string{headed("typ", "at+jwt")}, "bad-token"},
		"operator's":       {[]string{signed("aud", "shop:operator")}, "bad-token"},
		"for nobody":       {[]string{signed("aud", nil)}, "bad-token"},
		"expired":          {[]string{forged(t, jwt.SigningMethodHS256, []byte(shopSecret), func(_, claims map[string]any) { claims["nbf"], claims["exp"] = 1, 2 })}, "bad-token"},
		"not good yet":     {[]string{signed("nbf", time.Now().Unix()+hour/2)}, "bad-token"},
		"good for ever":    {[]string{signed("exp", nil)}, "bad-token"},
		"good for decades": {[]string{signed("exp", time.Now().Unix()+hour*24*365*20)}, "bad-token"},
		"exp 1e300":        {[]string{signed("exp", 1e300)}, "bad-token"},
		"exp text":         {[]string{signed("exp", "tomorrow")}, "bad-token"},
		"nobody's":         {[]string{signed("sub", nil)}, "bad-token"},
		"sub a number":     {[]string{signed("sub", 1)}, "bad-token"},
		"sub with NUL":     {[]string{signed("sub", "ann\x00")}, "bad-token"},
		"sub a path":       {[]string{signed("sub", "../ann")}, "bad-token"},
	} {
		for _, call := range []string{"POST /v1/orders", "GET /v1/orders", "GET /v1/orders/ANN", "POST /v1/orders/ANN/pay", "POST /v1/orders/no-uuid/cancel"} {
			method, target, _ := strings.Cut(call, " ")
			bad := badRequest{shop: tokenShop, method: method, target: target, headers: c.headers, status: http.StatusUnauthorized, slug: c.slug}
			if target == "/v1/orders" && method == http.MethodPost {
				bad.body, bad.headers = "no JSON", append([]string{"Content-Type: text/plain"}, c.headers...)
			}
			table["token: "+name+", "+call] = bad
		}
	}
	return table
}
