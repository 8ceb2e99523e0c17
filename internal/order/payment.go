package order

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"example.com/shop/internal/stock"
)

// MaxPaymentID is how many characters the id of a payment may have.
const MaxPaymentID = 255

// OwnWord begins the id of a payment that a buyer has made by its own word; the id of the order follows.
const OwnWord = "buyer:"

// Payment is a payment provider's word that a buyer has paid for an order. It is on record for ever, under the provider's
// id: providers repeat themselves for days.
type Payment struct {
	ID      string // the provider's; printable ASCII
	OrderID string
	Amount  stock.Money

	// Refusal is the code of the error for which the payment does not pay the order, so that the money has to be refunded;
	// empty for the one payment of each paid order.
	Refusal string

	At         time.Time // UTC, by the database's clock, when it was recorded
	RefundedAt time.Time // by the same clock; zero until then
}

// Reasons why a payment does not pay its order, besides ErrExpired and ErrState. The money has to be refunded.
var (
	ErrAlreadyPaid    = &Error{Code: "already-paid", Text: "the order is already paid"}
	ErrAmountMismatch = &Error{Code: "amount-mismatch", Text: "the payment is not the total of the order"}
)

// Errors of a payment that is not recorded.
var (
	ErrPayment       = &Error{Code: "invalid-payment", Text: "invalid payment"}
	ErrPaymentReused = &Error{Code: "payment-reused", Text: "this payment is on record for another order or amount"}
	ErrNoPayment     = &Error{Code: "payment-not-found", Text: "payment not found"}
)

// CheckPaymentID returns ErrPayment for an id that is empty, longer than MaxPaymentID, or not printable ASCII.
func CheckPaymentID(id string) error {
	if id == "" || len(id) > MaxPaymentID || strings.ContainsFunc(id, func(c rune) bool { return c < ' ' || c > '~' }) {
		return ErrPayment.with("payment_id: want 1 to %d characters of printable ASCII", MaxPaymentID)
	}
	return nil
}

var currencyRule = regexp.MustCompile(`^[A-Z]{3}$`)

// validate returns ErrPayment with the first rule that p breaks.
func (p Payment) validate() error {
	if err := CheckPaymentID(p.ID); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(p.ID, OwnWord):
		return ErrPayment.with("payment_id: %q begins the ids of what buyers pay by their own word", OwnWord)
	case p.Amount.Minor < 0:
		return ErrPayment.with("amount: want 0 or more minor units")
	case !currencyRule.MatchString(p.Amount.Currency):
		return ErrPayment.with("amount: currency: want three capital letters (ISO 4217)")
	}
	return nil
}

// SameAs reports whether p is q sent again.
func (p Payment) SameAs(q Payment) bool { return p.OrderID == q.OrderID && p.Amount == q.Amount }

// Refusal returns the code for which the order refuses a payment of this amount; empty if the payment pays it.
func (f Found) Refusal(amount stock.Money) string {
	switch {
	case f.Status == Paid:
		return ErrAlreadyPaid.Code
	case f.Status == Cancelled:
		return ErrState.Code
	case f.Status == Expired || f.Due:
		return ErrExpired.Code
	case f.Total != amount:
		return ErrAmountMismatch.Code
	}
	return ""
}

// TakePayment makes the pending order of a payment paid, by the word of the payment provider: its units become sold. The
// same payment again gets the same answer, however long ago the first was. A refusal is recorded; nothing else changes,
// and the money has to be refunded: Error.Refund. A refused payment that is not refunded yet may pay another order instead.
//
// Errors: ErrPayment, ErrNotFound, ErrPaymentReused, ErrBusy, ErrUnknownOutcome; and to be refunded: ErrAlreadyPaid,
// ErrAmountMismatch, ErrExpired, ErrState.
func (s *Service) TakePayment(ctx context.Context, p Payment) (Ended, error) {
	if err := p.validate(); err != nil {
		return Ended{}, err
	}
	return s.endAs(ctx, Ending{Order: Order{ID: p.OrderID}, As: Paid, Payment: p})
}

// refused is the error of a payment that was refused by the order, which is now as o.
func (p Payment) refused(o Order) error {
	text := map[string]string{
		ErrAlreadyPaid.Code:    "another payment has paid it: refund this one",
		ErrAmountMismatch.Code: fmt.Sprintf("the payment is %d %s, the order costs %d %s (minor units): refund it", p.Amount.Minor, p.Amount.Currency, o.Total.Minor, o.Total.Currency),
		ErrExpired.Code:        "it expired before it was paid, and its units are for sale again: refund the payment, or place the order again with a new Idempotency-Key if units are left",
		ErrState.Code:          "it was cancelled, and its units are for sale again: refund the payment, or place the order again with a new Idempotency-Key if units are left",
	}[p.Refusal]
	return &Error{Code: p.Refusal, Text: text, Status: o.Status, Refund: true}
}

// PaymentFailed takes a payment provider's word that a payment has failed, and returns the order. The order keeps its units
// until its hold ends, so that the buyer can try again; with release, a pending order is cancelled. An order that has
// ended stays as it is: the provider's messages may come out of order. Errors: ErrNotFound, ErrBusy, ErrUnknownOutcome.
func (s *Service) PaymentFailed(ctx context.Context, id string, release bool) (Order, error) {
	if release {
		ended, err := s.endAs(ctx, Ending{Order: Order{ID: id}, As: Cancelled})
		if !errors.Is(err, ErrState) && !errors.Is(err, ErrExpired) {
			return ended.Order, err
		}
	}
	return s.order(ctx, id)
}

// Extend lets a pending order hold its units for longer, once, while a payment is under way. An order that was extended
// is returned as it is. Errors: ErrNotFound, ErrExpired, ErrState, ErrBusy, ErrUnknownOutcome.
func (s *Service) Extend(ctx context.Context, id string) (Order, error) {
	var o Order
	confirm := s.Store.Confirm()
	err := s.Store.InTx(ctx, func(tx Tx) error {
		orders, err := tx.LockOrders(id)
		if err != nil {
			return err
		}
		found, exists := orders[id]
		o = found.Order
		switch {
		case !exists:
			return ErrNotFound
		case found.Status == Pending && found.Due:
			return hasEnded(Expired)
		case found.Status != Pending:
			return hasEnded(found.Status)
		case !found.FirstExpiry.IsZero():
			return nil
		case !found.Locked:
			return ErrBusy.with("another transaction has locked the order")
		}
		o.FirstExpiry, o.ExpiresAt = o.ExpiresAt, o.ExpiresAt.Add(s.Extension)
		return tx.Extend(o)
	})
	if errors.Is(err, ErrExpired) && o.Status == Pending { // no sweep has expired it yet, and the answer says that its units are for sale
		if _, unended := s.endAs(ctx, Ending{Order: Order{ID: id}, As: Expired}); unended != nil {
			return Order{}, unended
		}
	}
	if err != nil {
		return Order{}, fmt.Errorf("order %s: %w", id, confirm(ctx, err))
	}
	return o, nil
}
