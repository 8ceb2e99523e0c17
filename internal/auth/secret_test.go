package auth_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/shop/internal/auth"
)

func TestCheckSecret(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want error
		says string
	}{
		"good":               {secretText, nil, ""},
		"hexadecimal":        {"9f86d081884c7d659a2feaa0c55ad015", nil, ""},
		"as openssl makes":   {"q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=", nil, ""},
		"longest":            {strings.Repeat(secretText, auth.MaxSecret/len(secretText)), nil, ""},
		"empty":              {"", auth.ErrSecretNone, "there is none"},
		"31 bytes":           {secretText[:31], auth.ErrSecretShort, "31 bytes, want at least 32"},
		"too long":           {strings.Repeat("abcdefghi", 200), auth.ErrSecretLong, "1024"},
		"compose's":          {"lab-only", auth.ErrSecretKnown, `"lab-only"`},
		"compose's, padded":  {"lab-only lab-only-lab-only_LAB-ONLY", auth.ErrSecretKnown, `"lab-only"`},
		"repeated":           {strings.Repeat("changeme", 5), auth.ErrSecretKnown, `"changeme"`},
		"jwt.io":             {"a-string-secret-at-least-256-bits-long", auth.ErrSecretKnown, "256-bits"},
		"jwt.io, older":      {"your-256-bit-secret", auth.ErrSecretKnown, "your-256-bit-secret"},
		"template":           {"super-secret-jwt-token-with-at-least-32-characters-long", auth.ErrSecretKnown, "jwt-token"},
		"RFC 7515":           {"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow", auth.ErrSecretKnown, "aym1"},
		"one letter":         {strings.Repeat("x", 64), auth.ErrSecretPlain, "8 different"},
		"seven letters":      {strings.Repeat("abcdefg", 9), auth.ErrSecretPlain, "8 different"},
		"with line break":    {secretText + "\n", auth.ErrSecretText, "ASCII"},
		"blank before":       {" " + secretText, auth.ErrSecretText, "blanks"},
		"NUL":                {secretText + "\x00", auth.ErrSecretText, "ASCII"},
		"byte order mark":    {"\ufeff" + secretText, auth.ErrSecretText, "ASCII"},
		"random bytes":       {"\x80\x81\x82\x83" + secretText, auth.ErrSecretText, "ASCII"},
		"umlauts":            {"ü" + secretText, auth.ErrSecretText, "ASCII"},
		"phrase with blanks": {"seven red foxes juggle 3 big melons", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := auth.CheckSecret(c.text)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil {
				return
			}
			if !errors.Is(err, auth.ErrSecret) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want ErrSecret and %q in it", err, c.says)
			}
			if strings.Contains(err.Error(), secretText) {
				t.Errorf("got %v, want the secret not in it", err)
			}
		})
	}
}

// "A Secret does not print: whatever the verb, a log gets "[secret]"."
func TestSecret_hidden(t *testing.T) {
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
	for _, leak := range []string{secretText, secretText[:8], fmt.Sprintf("%x", secretText[:4]), "86 113 51"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("got %s, want no %q in it", out.String(), leak)
		}
	}
	if got := strings.Count(out.String(), "[secret]"); got != 16 {
		t.Errorf("got [secret] %d times in %s, want 16", got, out.String())
	}
}

// file writes a file with exactly these permissions, whatever the umask.
func file(t *testing.T, text string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadSecretFile(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(file(t, secretText, 0o600), link); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "none")
	for name, c := range map[string]struct {
		path string
		want error
		says string
	}{
		"plain":             {file(t, secretText, 0o600), nil, ""},
		"with line break":   {file(t, secretText+"\n", 0o400), nil, ""},
		"as Windows writes": {file(t, secretText+"\r\n", 0o640), nil, ""},
		"link":              {link, nil, ""},
		"longest":           {file(t, strings.Repeat(secretText, 32)+"\r\n", 0o600), nil, ""},
		"two line breaks":   {file(t, secretText+"\n\n", 0o600), auth.ErrSecretText, "it is in "},
		"empty":             {file(t, "", 0o600), auth.ErrSecretNone, "is empty"},
		"too long":          {file(t, strings.Repeat(secretText, 33), 0o600), auth.ErrSecretLong, "1024"},
		"published":         {file(t, "lab-only\n", 0o600), auth.ErrSecretKnown, "lab-only"},
		"all may read":      {file(t, secretText, 0o644), auth.ErrSecretFile, "mode 0644"},
		"group may write":   {file(t, secretText, 0o660), auth.ErrSecretFile, "chmod 600"},
		"missing":           {missing, fs.ErrNotExist, "make one with: (umask 077; openssl rand -base64 32 > "},
		"folder":            {filepath.Dir(link), auth.ErrSecretFile, "regular file"},
		"device":            {os.DevNull, auth.ErrSecretFile, "regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret, err := auth.ReadSecretFile(c.path)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil {
				if _, err := auth.New(secret); err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, auth.ErrSecret) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("got %v, want ErrSecret, %q and %s in it", err, c.says, c.path)
			}
		})
	}
}

// A file that this user may not read is fs.ErrPermission, with its path.
func TestReadSecretFile_unreadable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	path := file(t, secretText, 0o200)
	if _, err := auth.ReadSecretFile(path); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want fs.ErrPermission and %s in it", err, path)
	}
}
