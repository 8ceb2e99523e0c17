package auth

import (
	"crypto/rand"
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

const secretBytes = 32 // the size of the hash (RFC 7518, section 3.2)

// Secret signs buyers' tokens, or is the operator's token itself. The zero value is no secret. A Secret never prints
// its text: every verb, and a log, shows "[secret]".
type Secret struct {
	text string // as given: base64 and hex are not decoded
}

// NewSecret accepts 32 random bytes, written in base64 or as hexadecimal digits. It refuses any other text, because a
// long phrase can be guessed. The error never shows the text.
func NewSecret(text string) (Secret, error) {
	random, err := hex.DecodeString(text)
	if err != nil {
		random, err = base64.StdEncoding.Strict().DecodeString(text)
	}
	if err != nil || len(random) != secretBytes || strings.ContainsAny(text, "\r\n") {
		return Secret{}, fmt.Errorf("secret: want %d random bytes in base64 or hexadecimal digits; make one with: "+
			"openssl rand -base64 32", secretBytes)
	}
	return Secret{text: text}, nil
}

// RandomSecret returns a new secret.
func RandomSecret() Secret {
	random := make([]byte, secretBytes)
	rand.Read(random)
	return Secret{text: base64.StdEncoding.EncodeToString(random)}
}

// IsZero reports whether s is the zero value, which is no secret.
func (s Secret) IsZero() bool { return s.text == "" }

// Is reports whether text is the secret. It compares in constant time.
func (s Secret) Is(text string) bool {
	return !s.IsZero() && subtle.ConstantTimeCompare([]byte(s.text), []byte(text)) == 1
}

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// Format prints "[secret]" for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[secret]") }

// LogValue logs "[secret]".
func (Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// ReadSecretFile reads the secret from a file, without the end of line that editors add. The file may be a link.
func ReadSecretFile(path string) (Secret, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Secret{}, fmt.Errorf("secret: %w; make one with: (umask 077; openssl rand -base64 32 > %s)", err, path)
	case err != nil:
		return Secret{}, fmt.Errorf("secret: %w", err)
	case info.Mode().Perm()&0o027 != 0: // the group may only read, and others may do nothing
		return Secret{}, fmt.Errorf("secret: %s: other users may use the file (mode %04o): want mode 0600 or 0640: chmod 600 %[1]s",
			path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path) //nolint:gosec // the operator names it
	if err != nil {
		return Secret{}, fmt.Errorf("secret: %w", err)
	}
	secret, err := NewSecret(strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"))
	if err != nil {
		return Secret{}, fmt.Errorf("%w; %s contains another text", err, path)
	}
	return secret, nil
}

// KeptSecret reads the secret in a file as ReadSecretFile does. If there is no file, KeptSecret makes one with a random
// secret and mode 0600. An interrupted call leaves the complete file or none.
func KeptSecret(path string) (Secret, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = makeSecret(path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) { // another shop may have made the file first
		return Secret{}, fmt.Errorf("secret: make one: %w", err)
	}
	return ReadSecretFile(path)
}

// makeSecret writes a temporary file and links it to path, which, unlike a rename, replaces nothing.
func makeSecret(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-") // of mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = fmt.Fprintln(f, RandomSecret().text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}
