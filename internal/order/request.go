package order

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Limits of a request.
const (
	MaxKey      = 255   // characters of an idempotency key
	MaxUnits    = 1_000 // units in one line
	MaxLines    = 1     // lines of an order
	MaxThinking = time.Second
)

// Request is what a buyer asks for.
type Request struct {
	Buyer string
	Key   string // idempotency key, chosen by the buyer, one per purchase
	Lines []RequestLine

	// Strategy and Think are for teaching: empty and zero mean the shop's own.
	Strategy string
	Think    time.Duration // between reading the stock and writing it
}

// RequestLine is one line of a request.
type RequestLine struct {
	SKU   string
	Units int64
}

var buyerRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// Validate reports the first rule that r breaks, without asking any store.
func (r Request) Validate() error {
	switch {
	case r.Key == "":
		return ErrKeyMissing
	case len(r.Key) > MaxKey:
		return fmt.Errorf("%w: %d characters, at most %d are allowed", ErrKeyInvalid, len(r.Key), MaxKey)
	case strings.ContainsFunc(r.Key, func(c rune) bool { return c < ' ' || c > '~' }):
		return fmt.Errorf("%w: only printable ASCII is allowed", ErrKeyInvalid)
	case !buyerRule.MatchString(r.Buyer):
		return fmt.Errorf("%w: buyer %.80q: want 1 to 64 letters, digits, '.', '_', '@', '-'", ErrInvalid, r.Buyer)
	case len(r.Lines) == 0:
		return fmt.Errorf("%w: an order needs a line", ErrInvalid)
	case len(r.Lines) > MaxLines:
		return fmt.Errorf("%w: %d lines, at most %d are allowed", ErrInvalid, len(r.Lines), MaxLines)
	case r.Think < 0 || r.Think > MaxThinking:
		return fmt.Errorf("%w: think time %v: want 0 to %v", ErrInvalid, r.Think, MaxThinking)
	}
	for i, line := range r.Lines {
		switch {
		case line.Units < 1:
			return fmt.Errorf("%w: line %d: quantity is less than 1", ErrInvalid, i+1)
		case line.Units > MaxUnits:
			return fmt.Errorf("%w: line %d: quantity is more than %d", ErrInvalid, i+1, MaxUnits)
		}
	}
	return nil
}

// fingerprint tells two requests with the same key apart. It covers what is
// bought, not how the shop goes about it.
func (r Request) fingerprint() string {
	h := sha256.New()
	for _, line := range r.Lines {
		fmt.Fprintf(h, "%q %d\n", line.SKU, line.Units)
	}
	return hex.EncodeToString(h.Sum(nil))
}
