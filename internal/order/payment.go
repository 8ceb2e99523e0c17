package order

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"example.com/shop/internal/stock"
)

// OwnWord begins the id of the payment that the shop itself records; the order's id follows.
const OwnWord = "buyer:"

// OwnPayment returns the payment that the shop records for a free order, or if the buyer pays without a payment
// service.
func (o Order) OwnPayment() Payment {
	return Payment{ID: OwnWord + o.ID, OrderID: o.ID, Amount: o.Total}
}

// Payment is a payment of a buyer for an order, as the payment provider reports it. It is on record for ever, under the
// provider's id, because providers repeat their reports for days. Its JSON is what the API shows.
type Payment struct {
	ID string `json:"payment_id"` // made by the provider

	// Both are empty if so far only the refund was reported.
	OrderID string      `json:"order_id,omitempty"`
	Amount  stock.Money `json:"amount,omitzero"`

	// Refusal is the code of the reason why the payment does not pay its order; empty for the payment that paid the order.
	Refusal string `json:"refusal,omitempty"`

	RecordedAt time.Time `json:"created_at"`           // UTC, by the database's clock
	RefundedAt time.Time `json:"refunded_at,omitzero"` // by the same clock; zero before the refund
}

// PaymentList selects payments. Its text is the parameter of the API.
type PaymentList string

// The lists.
const (
	AllPayments      PaymentList = ""
	RefusedPayments  PaymentList = "refused"  // and not refunded: the shop owes the buyer the money
	RefundedPayments PaymentList = "refunded" // that have paid their orders: the buyer has the money back, and may get the goods
)

// Reasons why a payment does not pay its order. ErrExpired and ErrState are further reasons. Unless it is already
// refunded, the payment must be refunded.
var (
	ErrAlreadyPaid     = &Error{Code: "already-paid", Text: "the order is already paid"}
	ErrAmountMismatch  = &Error{Code: "amount-mismatch", Text: "the payment is not the total of the order"}
	ErrAlreadyRefunded = &Error{Code: "already-refunded", Text: "the payment is already refunded"}
)

// Errors of a payment that is not recorded.
var (
	ErrPayment       = &Error{Code: "invalid-payment", Text: "invalid payment"}
	ErrPaymentReused = &Error{Code: "payment-reused", Text: "this payment is on record for another order or amount"}
	ErrNoPayment     = &Error{Code: "payment-not-found", Text: "payment not found"}
)

// CheckPaymentID returns ErrPayment unless an id has 1 to 255 letters, digits or any of _:=+@~-. and does not begin
// with a dot: clients and proxies remove the segments . and .. from the path of a URL.
func CheckPaymentID(id string) error {
	if !paymentIDRule.MatchString(id) {
		return ErrPayment.with("payment_id: want 1 to 255 letters, digits or any of _:=+@~-. of which the first is not a dot")
	}
	return nil
}

var paymentIDRule = regexp.MustCompile(`^[A-Za-z0-9_:=+@~-][A-Za-z0-9._:=+@~-]{0,254}$`)

// validate returns an ErrPayment for the first rule that p breaks.
func (p Payment) validate() error {
	if err := CheckPaymentID(p.ID); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(p.ID, OwnWord):
		return ErrPayment.with("payment_id: ids that begin with %q are the shop's own", OwnWord)
	case p.Amount.Minor < 1: // a free order is already paid
		return ErrPayment.with("amount: want 1 or more minor units")
	case !stock.ValidCurrency(p.Amount.Currency):
		return ErrPayment.with("amount: currency: want three capital letters (ISO 4217)")
	}
	return nil
}

// Refusal returns the code of the reason why the order refuses a payment of this amount, or "" if it pays the order.
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

// TakePayment makes the pending order of a payment paid: its units become sold. If the payment is repeated, the answer
// is the same, however long ago the first answer was. A refused payment is recorded and must be refunded: Error.Refund.
// It changes no order, except that a due order expires. If the refund of a payment was reported before the payment, the
// payment is refused, and nothing is left to refund, unless that refund has failed since.
//
// Errors: ErrPayment, ErrNotFound, ErrPaymentReused, ErrAlreadyRefunded, ErrBusy, ErrUnknownOutcome; with Refund
// ErrAlreadyPaid, ErrAmountMismatch, ErrExpired, ErrState.
func (s *Service) TakePayment(ctx context.Context, p Payment) (Ended, error) {
	if err := p.validate(); err != nil {
		return Ended{}, err
	}
	return s.endAs(ctx, Ending{OrderID: p.OrderID, As: Paid, Payment: p})
}

// refused returns the error for a payment that the order refused.
func (p Payment) refused(o Order) error {
	text := map[string]string{
		ErrAlreadyPaid.Code:     "another payment has paid it: refund this one",
		ErrAmountMismatch.Code:  fmt.Sprintf("the payment is %d %s, the order costs %d %s (minor units): refund it", p.Amount.Minor, p.Amount.Currency, o.Total.Minor, o.Total.Currency),
		ErrExpired.Code:         "it expired before it was paid, and its units are for sale again: refund the payment; if units are left, the order can be placed again with a new Idempotency-Key",
		ErrAlreadyRefunded.Code: "the refund of this payment was reported before the payment, which therefore does not pay the order",
		ErrState.Code:           "it was cancelled, and its units are for sale again: refund the payment; if units are left, the order can be placed again with a new Idempotency-Key",
	}[p.Refusal]
	return &Error{Code: p.Refusal, Text: text, Status: o.Status, Refund: p.Refusal != ErrAlreadyRefunded.Code || p.RefundedAt.IsZero()}
}

// PaymentFailed is for a payment that has failed, as the payment provider reports it. It returns the order. The order
// keeps its units until its hold ends, so that the buyer can try again; with release, a pending order is cancelled. An
// order that has ended stays as it is, because reports may come out of order. Errors: ErrNotFound, ErrBusy,
// ErrUnknownOutcome.
func (s *Service) PaymentFailed(ctx context.Context, id string, release bool) (Order, error) {
	if release {
		ended, err := s.endAs(ctx, Ending{OrderID: id, As: Cancelled})
		if !errors.Is(err, ErrState) && !errors.Is(err, ErrExpired) {
			return ended.Order, err
		}
	}
	return s.order(ctx, id)
}

// Extend lets a pending order hold its units for longer, once, while a payment is under way. If the hold was extended
// before, Extend returns the order as it is. Errors: ErrNotFound, ErrExpired, ErrState, ErrBusy, ErrUnknownOutcome.
func (s *Service) Extend(ctx context.Context, id string) (Order, error) {
	began := time.Now()
	o, err := s.extend(ctx, id)
	for errors.Is(err, ErrLocked) && time.Since(began) < rowTimeout && Pause(ctx, rand.N(rowPause)) == nil {
		o, err = s.extend(ctx, id)
	}
	// ErrExpired says that the units are for sale again. So the order expires now, unless a sweep has already expired it.
	if errors.Is(err, ErrExpired) && o.Status == Pending {
		if _, unended := s.endAs(ctx, Ending{OrderID: id, As: Expired}); unended != nil {
			return Order{}, unended
		}
	}
	if err != nil {
		return Order{}, fmt.Errorf("order %s: %w", id, err)
	}
	return o, nil
}

// extend extends the order's hold in one transaction. It returns the order even if its hold is not extended.
func (s *Service) extend(ctx context.Context, id string) (o Order, err error) {
	err = s.Store.InTx(ctx, func(tx Tx) error {
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
			return ErrLocked
		}
		o.FirstExpiry, o.ExpiresAt = o.ExpiresAt, o.ExpiresAt.Add(s.Extension)
		return tx.Extend(o)
	})
	return o, err
}
