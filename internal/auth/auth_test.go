package auth_test

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/auth"
)

var (
	secretText = base64.StdEncoding.EncodeToString([]byte("0123456789abcdefghijklmnopqrstuv"))
	otherText  = base64.StdEncoding.EncodeToString([]byte("vutsrqponmlkjihgfedcba9876543210"))
)

// setup returns the tokens of a shop with a secret.
func setup(t *testing.T, text string) *auth.Tokens {
	t.Helper()
	secret, err := auth.NewSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return auth.New(secret)
}

const goodHeader = `{"alg":"HS256","typ":"JWT"}`

// forge signs whatever it is given, as could be done with the secret. NOW+60 stands for the date of a minute later.
func forge(header, claims, secret string) string {
	claims = regexp.MustCompile(`NOW([+-]\d+)?`).ReplaceAllStringFunc(claims, func(date string) string {
		offset, _ := strconv.ParseInt(date[3:], 10, 64)
		return strconv.FormatInt(time.Now().Unix()+offset, 10)
	})
	signed := encode(header) + "." + encode(claims)
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(signed))
	return signed + "." + encode(string(h.Sum(nil)))
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// claimsBut returns the claims of a good token with one of them replaced, or left out if it is empty.
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

func header(h string) string         { return forge(h, claimsBut("", ""), secretText) }
func payload(c string) string        { return forge(goodHeader, c, secretText) }
func with(name, value string) string { return payload(claimsBut(name, value)) }

// badTokens returns bad tokens, by a text of Verify's error. The tokens depend on the clock of the test that calls it.
func badTokens() map[string][]string {
	good := payload(claimsBut("", ""))
	parts := strings.Split(good, ".")
	table := map[string][]string{
		"token is malformed": {
			"", "ann", "..", parts[0] + "." + parts[1], good + "." + parts[2], "." + parts[1] + "." + parts[2],
			parts[0] + ".." + parts[2], "Bearer " + good, " " + good,
			good[:5] + "\x00" + good[5:], "é" + good, "\xff" + good, good + "=", "ey+/." + parts[1] + "." + parts[2], "a.b.c.d.e",
			header(`alg`), header(`["HS256"]`), header(`{"alg":"HS256"`), header(goodHeader + goodHeader), payload(`ann`),
			payload(`[]`), payload(claimsBut("", "") + `{}`),
			with("sub", "1"), with("sub", `["ann"]`), with("sub", "\"an\nn\""), with("exp", "NaN"), with("exp", "0777"),
			with("exp", "true"), with("exp", "{}"),
			with("nbf", `"soon"`), with("iat", "[NOW]"), with("exp", "1e400"), with("aud", "1"),
		},
		"bytes: at most 2048": {times("a", 2049), times(".", 1<<20),
			payload(strings.Replace(claimsBut("", ""), "{", `{"jti":"`+times("a", 1600)+`",`, 1))},
		"token signature is invalid": {
			parts[0] + "." + parts[1] + ".", encode(`{"alg":"none"}`) + "." + parts[1] + ".",
			forge(goodHeader, claimsBut("", ""), otherText), forge(goodHeader, claimsBut("", ""), ""),
			forge(`{"alg":"HS256","jwk":{"kty":"oct","k":"YQ"}}`, claimsBut("", ""), "a"),
			forge(`{"alg":"HS256","kid":"/dev/null"}`, claimsBut("", ""), ""),
			parts[0] + "." + strings.Split(with("sub", `"bob"`), ".")[1] + "." + parts[2],
			encode(`{"alg":"HS256"}`) + "." + parts[1] + "." + parts[2], good[:len(good)-3], parts[0] + "." + parts[1] + ".AA",
		},
		"crit asks for an extension": {header(`{"alg":"HS256","crit":["b64"],"b64":false}`), header(`{"alg":"HS256","crit":[]}`)},
		"token is missing required claim": {payload(`{}`), with("exp", ""), with("nbf", ""), with("aud", ""),
			with("exp", "null"), with("aud", "null")},
		"token has invalid audience": {with("aud", `"shop:operator"`), with("aud", `["shop:operator"]`)},
		"its exp is not within 30":   {with("exp", "NOW+2592001"), with("exp", "99999999999999"), with("nbf", "NOW-2592000")},
		"token is expired": {payload(strings.Replace(claimsBut("nbf", "NOW-60"), "NOW+60", "NOW-5", 1)),
			payload(strings.Replace(claimsBut("nbf", "1"), "NOW+60", "2", 1))},
		"token is not valid yet": {with("nbf", "NOW+6")}, "token used before issued": {with("iat", "NOW+6")},
		"": {with("exp", "1e300"), with("exp", "-1"), with("exp", "99999999999999999999"), with("exp", "NOW")}, // refused, whatever is said
	}
	const repeated = "its header or its claims repeat a name, or write it in another case"
	for _, name := range []string{"sub", "Sub", "SUB", "ſub", "aud", "Aud", "nbf", "nBf", "exp", "EXP", "iat", "iAt", "role"} {
		value := map[string]string{"sub": `"ann"`, "aud": `"shop:buyer"`, "nbf": "NOW", "exp": "NOW+60", "iat": "NOW"}[strings.ToLower(name)]
		member := strconv.Quote(name) + ":" + cmp.Or(value, `"ann"`)
		if name == "role" {
			member += "," + member
		}
		table[repeated] = append(table[repeated], payload("{"+member+","+claimsBut("", "")[1:]),
			payload(strings.TrimSuffix(claimsBut("", ""), "}")+","+member+"}"))
	}
	table[repeated] = append(table[repeated], payload(strings.Replace(claimsBut("", ""), `"sub"`, `"Sub"`, 1)),
		header(`{"alg":"none","alg":"HS256"}`), header(`{"Alg":"none","alg":"HS256"}`),
		header(`{"alg":"HS256","typ":"JWT","typ":"JWT"}`), header(`{"alg":"HS256","Crit":["b64"]}`))
	for _, algorithm := range []string{"none", "None", "nOnE", "", "hs256", "HS256 ", "HS384", "HS512", "RS256", "PS256",
		"ES256", "EdDSA", "dir"} {
		table[""] = append(table[""], header(`{"alg":"`+algorithm+`"}`))
	}
	return table
}

func times(text string, n int) string { return strings.Repeat(text, n) }

// Verify's errors match ErrToken, say "what is wrong with the token and contains no part of it". "A token that repeats
// a name, or writes one of these names in another case, is refused."
func TestTokens_Verify(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := setup(t, secretText)
		for says, all := range badTokens() {
			for _, token := range all {
				buyer, err := tokens.Verify(token)
				if buyer != "" || !errors.Is(err, auth.ErrToken) || !strings.Contains(err.Error(), says) {
					t.Errorf("%.200s: got buyer %q, %v; want %q", token, buyer, err, says)
					continue
				}
				for part := range strings.SplitSeq(token, ".") {
					if len(part) > 4 && strings.Contains(err.Error(), part) {
						t.Errorf("%s: got %v, want nothing of the token in it", token, err)
					}
				}
			}
		}
		// What other issuers write differently, within RFC 7519, is understood.
		for _, token := range []string{
			payload(claimsBut("", "")), with("iat", ""), header(`{"alg":"HS256"}`), header(`{"typ":"jwt","alg":"HS256"}`),
			header(`{"alg":"HS256","kid":"2026"}`),
			payload("\n " + claimsBut("", "") + "\t"), with("aud", `["shop:operator","shop:buyer"]`), with("sub", `"\u0061nn"`),
			payload(`{"jti":"1","roles":{"a":[null,1]},` + claimsBut("", "")[1:]), with("exp", "NOW+2592000"),
		} {
			if buyer, err := tokens.Verify(token); buyer != "ann" || err != nil {
				t.Errorf("%s: got %q, %v, want ann", token, buyer, err)
			}
		}
	})
}

// A token names its buyer from nbf until exp, with the leeway and not a moment longer, on every instance that has the
// secret.
func TestTokens_lifetime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := setup(t, secretText)
		token, expires, err := tokens.Mint("ann", time.Minute)
		if err != nil || !expires.Equal(time.Now().Add(time.Minute)) {
			t.Fatalf("got a token until %v, %v, want a minute", expires, err)
		}
		early := payload(strings.ReplaceAll(claimsBut("nbf", "NOW+10"), `"iat":NOW`, `"iat":NOW+10`))
		time.Sleep(10*time.Second - auth.Leeway) // the bubble's clock
		for _, good := range []string{token, early} {
			if buyer, err := setup(t, secretText).Verify(good); buyer != "ann" || err != nil {
				t.Errorf("got %q, %v, want ann", buyer, err)
			}
		}
		time.Sleep(time.Until(expires) + auth.Leeway - time.Nanosecond)
		if buyer, err := tokens.Verify(token); buyer != "ann" || err != nil {
			t.Errorf("got %q, %v at the end, want ann", buyer, err)
		}
		time.Sleep(time.Nanosecond)
		if buyer, err := tokens.Verify(token); buyer != "" || !errors.Is(err, auth.ErrToken) {
			t.Errorf("got %q, %v after the end, want ErrToken", buyer, err)
		}
	})
	tokens := setup(t, secretText)
	for lifetime, good := range map[time.Duration]bool{
		-time.Hour: false, 0: false, auth.MinLifetime - 1: false, auth.MinLifetime: true, auth.MaxLifetime: true, auth.MaxLifetime + 1: false,
	} {
		if token, _, err := tokens.Mint("ann.b_c@d-e", lifetime); (err == nil) != good || len(token) > auth.MaxToken {
			t.Errorf("lifetime %v: got %d bytes, %v", lifetime, len(token), err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("got tokens of no secret")
		}
	}()
	auth.New(auth.Secret{})
}

// "NewSecret accepts 32 random bytes, written in base64 or as hexadecimal digits. It refuses any other text."
func TestNewSecret(t *testing.T) {
	t.Parallel()
	hexadecimal := "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for _, good := range []string{secretText, "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQF2vmzAAsE0I=", hexadecimal, strings.ToUpper(hexadecimal)} {
		if secret, err := auth.NewSecret(good); err != nil || secret.Reveal() != good {
			t.Errorf("%s: got %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "lab-only", hexadecimal[:62], hexadecimal + "00", hexadecimal[:32], secretText[:43], secretText + "\n",
		secretText[:10] + "\n" + secretText[10:], " " + secretText,
		times("x", 64), "qwertyuiopasdfghjklzxcvbnmqwertyuiop", "my-32-character-ultra-secure-and-ultra-long-secret",
		"a-string-secret-at-least-256-bits-long",
		"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow", "seven red foxes juggle 3 big melons",
	} {
		if _, err := auth.NewSecret(bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: got %v, want an error, and the text not in it", bad, err)
		}
	}
}

// "A Secret never prints its text", and Is is true of the text alone.
func TestSecret(t *testing.T) {
	t.Parallel()
	secret, err := auth.NewSecret(secretText)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+" "+verb+"\n", secret, struct{ S any }{secret})
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("text", "secret", secret)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "secret", secret)
	for _, leak := range []string{secretText[:8], fmt.Sprintf("%x", secretText[:4])} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("got %s, want no %q in it", out.String(), leak)
		}
	}
	if got := strings.Count(out.String(), "[secret]"); got != 16 {
		t.Errorf("got [secret] %d times in %s, want 16", got, out.String())
	}
	for _, text := range []string{"", secretText[1:], secretText + "x", otherText} {
		if secret.Is(text) {
			t.Errorf("got that the secret is %q", text)
		}
	}
	if !secret.Is(secretText) || (auth.Secret{}).Is("") {
		t.Error("got that a secret is not itself, or that no secret is the empty text")
	}
}

// file writes a file with exactly these permissions, whatever the umask.
func file(t *testing.T, text string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadSecretFile(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "link")
	dangling := filepath.Join(filepath.Dir(link), "dangling")
	if err := errors.Join(os.Symlink(file(t, secretText, 0o600), link),
		os.Symlink(filepath.Join(filepath.Dir(link), "gone"), dangling)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file(t, secretText, 0o600), file(t, secretText+"\n", 0o400), file(t, secretText+"\r\n", 0o640), link} {
		for name, read := range map[string]func(string) (auth.Secret, error){
			"ReadSecretFile": auth.ReadSecretFile, "KeptSecret": auth.KeptSecret,
		} {
			if secret, err := read(path); err != nil || !secret.Is(secretText) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
	for _, c := range []struct{ path, says string }{
		{file(t, secretText+"\n\n", 0o600), "contains another text"}, {file(t, "", 0o600), "contains another text"},
		{file(t, "lab-only\n", 0o600), "openssl rand -base64 32"}, {file(t, secretText, 0o644), "mode 0644"},
		{file(t, secretText, 0o660), "chmod 600"},
		{filepath.Join(t.TempDir(), "none"), "make one with: (umask 077; openssl rand -base64 32 > "},
		{filepath.Dir(link), filepath.Dir(link)}, {os.DevNull, "mode 0666"},
	} {
		if _, err := auth.ReadSecretFile(c.path); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("got %v, want %q and %s in it", err, c.says, c.path)
		}
	}
	// KeptSecret replaces nothing that is there.
	for _, path := range []string{file(t, secretText, 0o644), dangling, filepath.Join(filepath.Dir(link), "absent", "secret")} {
		if _, err := auth.KeptSecret(path); err == nil {
			t.Errorf("%s: got a secret, want an error", path)
		}
	}
	if os.Geteuid() != 0 {
		if _, err := auth.ReadSecretFile(file(t, secretText, 0o200)); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("got %v, want fs.ErrPermission", err)
		}
	}
}

// "If there is no file, KeptSecret makes one with a random secret and mode 0600", and keeps it.
func TestKeptSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "token.secret")
	first, err := auth.KeptSecret(path)
	if again, errAgain := auth.KeptSecret(path); err != nil || errAgain != nil || first.IsZero() || again != first {
		t.Errorf("got errors %v, %v, or two secrets of one file; want one secret", err, errAgain)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
	if other, err := auth.KeptSecret(filepath.Join(dir, "operator.token")); err != nil || other == first {
		t.Errorf("got the same secret in another file, %v", err)
	}
}
