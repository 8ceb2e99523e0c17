package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// ErrSecret is matched by every error about a secret, ErrSecretNone by those about one
// that is empty. They never show a secret.
var (
	ErrSecret     = errors.New("secret")
	ErrSecretNone = errors.New("there is none")
)

const (
	secretBytes = 32 // as many as the hash has (RFC 7518, section 3.2)
	minDistinct = 16 // of them, so that repeated text is refused; random bytes have about 30

	howToMake = "make one with: openssl rand -base64 32"
)

// Secret signs buyers' tokens, or is the operator's token itself. The zero value is none.
// It does not print: whatever the verb, a log gets "[secret]".
type Secret struct {
	text string // as it was given: base64 and hex are not decoded
}

// NewSecret takes 32 random bytes, written in base64 or as hexadecimal digits. No other
// text is taken: a phrase that looks long enough can be guessed.
func NewSecret(text string) (Secret, error) {
	if text == "" {
		return Secret{}, fmt.Errorf("%w: %w", ErrSecret, ErrSecretNone)
	}
	random, err := hex.DecodeString(text)
	if err != nil {
		random, err = base64.StdEncoding.Strict().DecodeString(text)
	}
	distinct := map[byte]bool{}
	for _, b := range random {
		distinct[b] = true
	}
	if err != nil || len(random) != secretBytes || strings.ContainsAny(text, "\r\n") || len(distinct) < minDistinct {
		return Secret{}, fmt.Errorf("%w: want %d random bytes in base64 or hexadecimal digits; %s", ErrSecret, secretBytes, howToMake)
	}
	return Secret{text: text}, nil
}

// RandomSecret makes a new one, in base64.
func RandomSecret() Secret {
	random := make([]byte, secretBytes)
	rand.Read(random)
	return Secret{text: base64.StdEncoding.EncodeToString(random)}
}

// IsZero tells the zero value.
func (s Secret) IsZero() bool { return s.text == "" }

// Is reports whether text is the secret, in a time that does not depend on how much of it
// is right.
func (s Secret) Is(text string) bool {
	have, want := sha256.Sum256([]byte(text)), sha256.Sum256([]byte(s.text))
	return subtle.ConstantTimeCompare(have[:], want[:]) == 1 && !s.IsZero()
}

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// Format prints "[secret]", whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[secret]") }

// LogValue logs "[secret]".
func (Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// tooOpen are the permissions that a secret's file must not give: any to everybody, and
// to its group that of writing it.
const tooOpen = 0o027

// ReadSecretFile reads the secret from a file: its text, without the end of line that
// editors add. The file may be a link, as orchestrators make them.
func ReadSecretFile(path string) (Secret, error) {
	info, err := os.Stat(path) // before it is opened: a pipe would block
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Secret{}, fmt.Errorf("%w: %w; make one with: (umask 077; openssl rand -base64 32 > %s)", ErrSecret, err, path)
	case err != nil:
		return Secret{}, fmt.Errorf("%w: %w", ErrSecret, err)
	case !info.Mode().IsRegular() || info.Size() > 1024:
		return Secret{}, fmt.Errorf("%w: %s: want a short regular file", ErrSecret, path)
	case info.Mode().Perm()&tooOpen != 0:
		return Secret{}, fmt.Errorf("%w: %s: others than its owner may use it (mode %04o): want 0600 or 0640, as after: chmod 600 %s",
			ErrSecret, path, info.Mode().Perm(), path)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the operator names it
	if err != nil {
		return Secret{}, fmt.Errorf("%w: %w", ErrSecret, err)
	}
	secret, err := NewSecret(strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"))
	if err != nil {
		return Secret{}, fmt.Errorf("%w; it is in %s", err, path)
	}
	return secret, nil
}

// KeptSecret reads the secret in a file as ReadSecretFile does, and makes a random one,
// of mode 0600, where there is no file. Of two that make it at once, both return the same.
func KeptSecret(path string) (Secret, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := writeSecret(path, RandomSecret()); err != nil && !errors.Is(err, fs.ErrExist) {
			return Secret{}, fmt.Errorf("%w: make one: %w", ErrSecret, err)
		}
	}
	return ReadSecretFile(path)
}

// writeSecret gives the file its name when it is complete.
func writeSecret(path string, secret Secret) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = fmt.Fprintln(f, secret.text)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}
