package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"
)

const (
	maxBody      = 1 << 20          // bytes; an event has some thousand
	eventTimeout = 25 * time.Second // for all that one event leads to
)

// service handles Stripe's events. It has no memory and no retry loop of its own: Stripe repeats an unacknowledged
// event for days, and both the calls of the shop and the refund may be repeated.
type service struct {
	webhookSecret, shopURL, shopToken string

	client *http.Client // for the shop
	stripe *stripe.Client
	log    *slog.Logger
}

// object is what matters of a PaymentIntent or a Charge. These fields are the same in all versions of Stripe's API since
// 2019.
type object struct {
	ID       string
	Metadata map[string]string // a Charge has a copy of its PaymentIntent's

	AmountReceived int64 `json:"amount_received"` // in Stripe's minor unit, which is the shop's, also for JPY (without decimals)
	Currency       string

	PaymentIntent string `json:"payment_intent"` // of a Charge
	Refunded      bool   // the Charge in full
}

// webhook acknowledges an event when all that it leads to is done. Otherwise it answers 503: Stripe sends the event again,
// and its dashboard shows the failure.
func (s *service) webhook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the event is too long or incomplete", http.StatusBadRequest)
		return
	}
	event, err := webhook.ConstructEventWithOptions(body, r.Header.Get("Stripe-Signature"), s.webhookSecret,
		webhook.ConstructEventOptions{IgnoreAPIVersionMismatch: true}) // the comment on object says why
	if err != nil {
		s.log.Warn("an event is refused", "error", err)
		http.Error(w, "the event has no valid signature", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), eventTimeout)
	defer cancel()
	if err := s.handle(ctx, event); err != nil {
		s.log.Error("an event is not acknowledged", "event", event.ID, "type", event.Type, "object", event.GetObjectValue("id"), "error", err)
		http.Error(w, "send the event again", http.StatusServiceUnavailable)
	}
}

// handle tells the shop what an event says.
func (s *service) handle(ctx context.Context, event stripe.Event) error {
	var o object
	if err := json.Unmarshal(event.Data.Raw, &o); err != nil {
		return err
	}
	log := s.log.With("event", event.ID, "type", event.Type, "object", o.ID, "order_id", o.Metadata["order_id"])
	if o.Metadata["order_id"] == "" {
		log.Info("not a payment of the shop: its metadata has no order_id")
		return nil
	}
	order := "/v1/orders/" + url.PathEscape(o.Metadata["order_id"])
	var refusal *problem
	switch event.Type {
	case stripe.EventTypePaymentIntentSucceeded:
		err := s.tellShop(ctx, order+"/pay", map[string]any{
			"payment_id": o.ID,
			"amount":     map[string]any{"minor": o.AmountReceived, "currency": strings.ToUpper(o.Currency)},
		})
		if !errors.As(err, &refusal) || !refusal.Refund {
			return err
		}
		if err := s.refund(ctx, event.ID, o.ID); err != nil {
			return fmt.Errorf("refund, since %w: %w", refusal, err)
		}
		log.Warn("the shop has refused the payment, and it is refunded", "refusal", refusal)
		return nil

	case stripe.EventTypePaymentIntentPaymentFailed:
		return s.tellShop(ctx, order+"/payment-failed", map[string]any{"release": false})

	case stripe.EventTypePaymentIntentProcessing:
		err := s.tellShop(ctx, order+"/extend", nil)
		if errors.As(err, &refusal) && refusal.Status == http.StatusConflict {
			log.Info("the order has ended and is not extended", "refusal", refusal)
			return nil
		}
		return err

	case stripe.EventTypeChargeRefunded:
		if !o.Refunded {
			log.Debug("a part of the money is not refunded")
			return nil
		}
		// A 404 means that payment_intent.succeeded is still to come. This event has to come again after it.
		return s.tellShop(ctx, "/v1/payments/"+url.PathEscape(o.PaymentIntent)+"/refunded", nil)
	default:
		return nil // it means nothing to the shop
	}
}

// refund refunds all of a payment. The id of the event is Stripe's idempotency key, so that an event that comes twice
// refunds once. The refund leads to the event charge.refunded.
func (s *service) refund(ctx context.Context, eventID, paymentID string) error {
	params := &stripe.RefundCreateParams{PaymentIntent: &paymentID}
	params.SetIdempotencyKey(eventID)
	_, err := s.stripe.V1Refunds.Create(ctx, params)
	if failure, ok := errors.AsType[*stripe.Error](err); ok && failure.Code == stripe.ErrorCodeChargeAlreadyRefunded {
		return nil
	}
	return err
}

// problem is an answer of the shop other than 200 and JSON.
type problem struct {
	Status       int `json:"-"` // of HTTP
	Type, Detail string
	Refund       bool // the money has to be refunded
}

func (p *problem) Error() string {
	return fmt.Sprintf("the shop: %d %s %s", p.Status, p.Type, p.Detail)
}

// tellShop calls the shop. Any answer but a 200 with JSON, such as a proxy's, is a *problem.
func (s *service) tellShop(ctx context.Context, path string, message map[string]any) error {
	var body bytes.Buffer
	if message != nil {
		if err := json.NewEncoder(&body).Encode(message); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.shopURL+path, &body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.shopToken)
	request.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	refusal := &problem{Status: answer.StatusCode}
	err = json.NewDecoder(io.LimitReader(answer.Body, maxBody)).Decode(refusal)
	if err == nil && answer.StatusCode == http.StatusOK {
		s.log.Info("the shop is told", "call", path)
		return nil
	}
	return refusal
}
