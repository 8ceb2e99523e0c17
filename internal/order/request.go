package order

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Limits of a request.
const (
	MaxKey      = 255   // characters of an idempotency key
	MaxUnits    = 1_000 // units of one SKU in an order
	MaxLines    = 20    // lines, as they are sent
	MaxThinking = time.Second
)

// Request is what a buyer asks for. Lines of the same SKU count as one line.
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

// Validate reports the first rule that r breaks, without asking any store.
func (r Request) Validate() error {
	if err := CheckKey(r.Key); err != nil {
		return err
	}
	if err := CheckBuyer(r.Buyer); err != nil {
		return err
	}
	switch {
	case len(r.Lines) == 0:
		return fmt.Errorf("%w: an order needs a line", ErrInvalid)
	case len(r.Lines) > MaxLines:
		return fmt.Errorf("%w: %d lines, at most %d are allowed", ErrInvalid, len(r.Lines), MaxLines)
	case r.Think < 0 || r.Think > MaxThinking:
		return fmt.Errorf("%w: think time %v: want 0 to %v", ErrInvalid, r.Think, MaxThinking)
	}
	for i, line := range r.Lines {
		switch {
		case line.SKU == "":
			return fmt.Errorf("%w: line %d: sku is missing", ErrInvalid, i+1)
		case line.Units < 1:
			return fmt.Errorf("%w: line %d: quantity is less than 1", ErrInvalid, i+1)
		case line.Units > MaxUnits:
			return fmt.Errorf("%w: line %d: quantity is more than %d", ErrInvalid, i+1, MaxUnits)
		}
	}
	for _, line := range r.merged().Lines {
		if line.Units > MaxUnits {
			return fmt.Errorf("%w: sku %.80q: its lines want %d units, at most %d are allowed", ErrInvalid, line.SKU, line.Units, MaxUnits)
		}
	}
	return nil
}

// merged returns the request with one line for each SKU, at the place of its
// first, with the units of all of them.
func (r Request) merged() Request {
	if len(r.Lines) < 2 {
		return r
	}
	lines := make([]RequestLine, 0, len(r.Lines))
	place := make(map[string]int, len(r.Lines))
	for _, line := range r.Lines {
		i, again := place[line.SKU]
		if again {
			lines[i].Units += line.Units
			continue
		}
		place[line.SKU] = len(lines)
		lines = append(lines, line)
	}
	r.Lines = lines
	return r
}

// skus returns the names in the order of the lines.
func (r Request) skus() []string {
	names := make([]string, len(r.Lines))
	for i, line := range r.Lines {
		names[i] = line.SKU
	}
	return names
}

// fingerprint tells two requests with the same key apart. It covers what is
// bought, not how the shop goes about it, nor in how many lines of one SKU: r is
// merged.
func (r Request) fingerprint() string {
	h := sha256.New()
	for _, line := range r.Lines {
		fmt.Fprintf(h, "%q %d\n", line.SKU, line.Units)
	}
	return hex.EncodeToString(h.Sum(nil))
}
