package auth

import (
	"fmt"
	"strings"
)

// Limits of a secret, in bytes. RFC 7518, section 3.2, wants a key as long as the
// hash at least, which is 32 for HS256.
const (
	MinSecret = 32
	MaxSecret = 1024

	minDifferent = 8 // characters; 32 random hexadecimal digits have fewer once in ten million times
)

// CheckSecret is the policy for secrets; it looks at nothing but the text. Its
// errors match ErrSecret and one of ErrSecretNone, ErrSecretShort, ErrSecretLong,
// ErrSecretText, ErrSecretKnown and ErrSecretPlain. They name a published secret,
// and never show any other.
func CheckSecret(text string) error {
	if text == "" {
		return fmt.Errorf("%w: %w", ErrSecret, ErrSecretNone)
	}
	// Before the length: who typed a demo's secret learns more from its name.
	if name, ok := published(text); ok {
		return fmt.Errorf("%w: %w: everyone knows %q; %s", ErrSecret, ErrSecretKnown, name, howToMake)
	}
	switch {
	case len(text) < MinSecret:
		return fmt.Errorf("%w: %w: %d bytes, want at least %d; %s", ErrSecret, ErrSecretShort, len(text), MinSecret, howToMake)
	case len(text) > MaxSecret:
		return fmt.Errorf("%w: %w: more than %d bytes", ErrSecret, ErrSecretLong, MaxSecret)
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) || strings.TrimSpace(text) != text:
		return fmt.Errorf("%w: %w: want printable ASCII without blanks around it; %s", ErrSecret, ErrSecretText, howToMake)
	case different(text) < minDifferent:
		return fmt.Errorf("%w: %w: fewer than %d different characters; %s", ErrSecret, ErrSecretPlain, minDifferent, howToMake)
	}
	return nil
}

const howToMake = "make one with: openssl rand -base64 32"

func different(text string) int {
	seen := map[rune]bool{}
	for _, c := range text {
		seen[c] = true
	}
	return len(seen)
}
