package order

import (
	"context"
	"fmt"
	"strings"
)

// CheckKey returns ErrKeyMissing for an empty idempotency key and ErrKeyInvalid
// for one that is not printable ASCII or longer than MaxKey. It is the rule that
// Request.Validate applies, for other calls that take a key.
func CheckKey(key string) error {
	switch {
	case key == "":
		return ErrKeyMissing
	case len(key) > MaxKey:
		return fmt.Errorf("%w: %d characters, at most %d are allowed", ErrKeyInvalid, len(key), MaxKey)
	case strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }):
		return fmt.Errorf("%w: only printable ASCII is allowed", ErrKeyInvalid)
	}
	return nil
}

// endPrint is the fingerprint of the request that an order ends. It is no hash,
// as that of a Request is, and so cannot be taken for one; the audit reads it.
func endPrint(id string, as Status) string {
	if as == Paid {
		return "pay:" + id
	}
	return "cancel:" + id
}

// answered returns the order with which the request of this fingerprint was
// answered under the key, as it was then, or ErrNotFound. The answer is not
// stored: of what it shows, an order changes nothing but its status.
func (s *Service) answered(ctx context.Context, buyer, key, fingerprint string, as Status) (Order, error) {
	o, first, err := s.store.Placed(ctx, buyer, key)
	if err != nil {
		return Order{}, fmt.Errorf("idempotency key: %w", err)
	}
	if first != fingerprint {
		return Order{}, ErrKeyReused
	}
	o.Status = as
	return o, nil
}

// errKeyGone is for a key that was taken and, a moment later, is not there: its
// time was over.
func errKeyGone() error {
	return fmt.Errorf("%w: the idempotency key was purged just now", ErrBusy)
}
