package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// Secret signs buyers' tokens, or is the operator's token itself. The zero value
// is none: it signs nothing and nobody has it. It keeps the bytes of the text as
// they are: base64 and hex are not decoded.
type Secret struct {
	key string
}

// NewSecret takes a text that CheckSecret lets pass, or returns its error.
func NewSecret(text string) (Secret, error) {
	if err := CheckSecret(text); err != nil {
		return Secret{}, err
	}
	return Secret{key: text}, nil
}

// IsZero tells the zero value.
func (s Secret) IsZero() bool { return s.key == "" }

// Is reports whether text is the secret. It compares in a time that does not tell
// how much of it is right, nor how long it is.
func (s Secret) Is(text string) bool {
	have, want := sha256.Sum256([]byte(text)), sha256.Sum256([]byte(s.key))
	return subtle.ConstantTimeCompare(have[:], want[:]) == 1 && !s.IsZero()
}

// Reveal returns the text, for whoever is to be told it.
func (s Secret) Reveal() string { return s.key }

const hidden = "[secret]"

// Format prints "[secret]", whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue logs "[secret]".
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
