package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"
)

const (
	maxBody      = 64 << 10          // bytes; an event has some thousand. A longer one is refused, and Stripe shows the failure
	eventTimeout = 25 * time.Second  // for all that one event leads to
	idleTimeout  = 620 * time.Second // load balancers have to close an idle connection first: Google's keep it for 600 s
)

// service handles Stripe's events. It has no memory and no retry loop of its own: Stripe repeats an unacknowledged
// event for days, and both the calls of the shop and the refund may be repeated.
type service struct {
	webhookSecret, shopURL, shopToken string

	live   bool         // the mode of Stripe's API key
	client *http.Client // for the shop
	stripe *stripe.Client
	log    *slog.Logger
}

// object is what matters of a PaymentIntent, a Charge or a Refund. These fields are the same in all
// versions of Stripe's API since 2019.
type object struct {
	ID       string
	Object   string            // such as "refund"
	Metadata map[string]string // a Charge has a copy of its PaymentIntent's, and a Refund has its own

	AmountReceived int64 `json:"amount_received"` // in Stripe's minor unit, which is the shop's, also for JPY (without decimals)
	Currency       string

	PaymentIntent string              `json:"payment_intent"` // of a Charge or a Refund
	Refunded      bool                // the Charge in full
	Status        stripe.RefundStatus // of a Refund
}

// orderID matches the ids of the shop's orders. Another application of the account may have another kind of order_id.
var orderID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// webhook acknowledges an event when all that it leads to is done. Otherwise it answers 503: Stripe sends the event
// again, and its dashboard shows the failure.
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
		http.Error(w, "the event has no valid signature, or is a thin event", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), eventTimeout)
	defer cancel()
	if err := s.handle(ctx, event); err != nil {
		s.log.Error("an event is not acknowledged", "event", event.ID, "type", event.Type, "object", event.GetObjectValue("id"), "error", err)
		http.Error(w, "send the event again", http.StatusServiceUnavailable)
	}
}

// handle does what an event asks for. What is not the shop's is acknowledged, because Stripe disables an endpoint that
// acknowledges too little.
func (s *service) handle(ctx context.Context, event stripe.Event) error {
	log := s.log.With("event", event.ID, "type", event.Type)
	switch {
	case event.Data == nil:
		log.Warn("the event has no data")
		return nil
	case event.Account != "":
		log.Warn("not the shop's: the event of a connected account", "account", event.Account)
		return nil
	case event.Livemode && !s.live:
		return errors.New("the event is of live mode, and STRIPE_SECRET_KEY of test mode")
	case s.live && !event.Livemode:
		log.Warn("no money: the event is of test mode, and STRIPE_SECRET_KEY of live mode")
		return nil
	}
	var o object
	if err := json.Unmarshal(event.Data.Raw, &o); err != nil {
		return err
	}
	log = log.With("object", o.ID, "payment_intent", o.PaymentIntent, "order_id", o.Metadata["order_id"])
	err := s.report(ctx, log, event, o)
	refusal, ok := errors.AsType[*answer](err)
	switch {
	case !ok || refusal.Refund:
		return err
	case refusal.is("order-not-found"), refusal.is("payment-not-found"):
		log.Warn("the shop does not know it: it is another application's, or the shop's database was restored", "refusal", refusal)
		return nil
	case refusal.is("order-ended"), refusal.is("order-expired"), refusal.is("already-refunded"):
		log.Info("nothing is left to do", "refusal", refusal)
		return nil
	}
	return err
}

// report tells the shop what an event says, and refunds a payment that the shop refuses.
func (s *service) report(ctx context.Context, log *slog.Logger, event stripe.Event, o object) error {
	if o.Object == "refund" {
		if o.PaymentIntent == "" || !failed(o.Status) {
			return nil
		}
		log.Warn("a refund has failed: the buyer does not have the money")
		return s.tellShop(ctx, "payments", o.PaymentIntent, "refund-failed", nil)
	}
	order := o.Metadata["order_id"]
	if !orderID.MatchString(order) {
		log.Warn("not a payment of the shop: its metadata has no order_id, or another application's")
		return nil
	}
	switch event.Type {
	case stripe.EventTypePaymentIntentSucceeded:
		err := s.tellShop(ctx, "orders", order, "pay", map[string]any{
			"payment_id": o.ID,
			"amount":     map[string]any{"minor": o.AmountReceived, "currency": strings.ToUpper(o.Currency)},
		})
		refusal, ok := errors.AsType[*answer](err)
		if !ok || !refusal.Refund {
			return err
		}
		if err := s.refund(ctx, event.ID, o.ID); err != nil {
			return fmt.Errorf("refund, since %w: %w", refusal, err)
		}
		log.Warn("the shop has refused the payment, and it is refunded", "refusal", refusal)
		return nil

	case stripe.EventTypePaymentIntentPaymentFailed:
		return s.tellShop(ctx, "orders", order, "payment-failed", map[string]any{"release": false})

	case stripe.EventTypePaymentIntentProcessing:
		return s.tellShop(ctx, "orders", order, "extend", nil)

	case stripe.EventTypeChargeRefunded:
		if o.PaymentIntent == "" || !o.Refunded {
			log.Debug("the charge has no PaymentIntent, or is not refunded in full")
			return nil
		}
		return s.tellShop(ctx, "payments", o.PaymentIntent, "refunded", nil)
	default:
		return nil // it means nothing to the shop
	}
}

// refund refunds all of a payment. The id of the event is Stripe's idempotency key, so that an event that comes twice
// refunds once. The refund leads to the event charge.refunded, and if it fails later, to refund.failed.
func (s *service) refund(ctx context.Context, eventID, paymentID string) error {
	params := &stripe.RefundCreateParams{PaymentIntent: &paymentID}
	params.SetIdempotencyKey(eventID)
	refund, err := s.stripe.V1Refunds.Create(ctx, params)
	if failure, ok := errors.AsType[*stripe.Error](err); ok && failure.Code == stripe.ErrorCodeChargeAlreadyRefunded {
		return nil
	}
	if err == nil && failed(refund.Status) {
		err = fmt.Errorf("refund %s is %s: %s", refund.ID, refund.Status, refund.FailureReason)
	}
	return err
}

// failed reports whether a refund does not bring the money back. A pending one may still fail.
func failed(status stripe.RefundStatus) bool {
	return status == stripe.RefundStatusFailed || status == stripe.RefundStatusCanceled
}

// answer is an answer of the shop: an order, a payment or a problem. It is an error unless it confirms a call.
type answer struct {
	code         int    // of HTTP
	ID           string // of an order
	PaymentID    string `json:"payment_id"` // of a payment
	Status       any    // of an order
	Type, Detail string // of a problem
	Refund       bool   // of a problem: the money has to be refunded
}

func (a *answer) Error() string { return fmt.Sprintf("the shop: %d %s %s", a.code, a.Type, a.Detail) }

func (a *answer) is(code string) bool { return a.Type == "/problems/"+code }

// tellShop makes a call about an order or a payment. The answer is an *answer unless it is a 200 with this order or
// payment: another server, such as a proxy with a page of its own, may answer anything.
func (s *service) tellShop(ctx context.Context, collection, id, call string, message map[string]any) error {
	var body bytes.Buffer
	if message != nil {
		if err := json.NewEncoder(&body).Encode(message); err != nil {
			return err
		}
	}
	path := "/v1/" + collection + "/" + url.PathEscape(id) + "/" + call
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.shopURL+path, &body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.shopToken)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var a answer
	_ = json.NewDecoder(io.LimitReader(response.Body, maxBody)).Decode(&a) // what is left out confirms nothing
	a.code, a.Refund = response.StatusCode, a.Refund && response.StatusCode == http.StatusConflict
	if a.code == http.StatusOK && cmp.Or(a.ID, a.PaymentID) == id && (call != "pay" || a.Status == "paid") {
		s.log.Info("the shop is told", "call", path)
		return nil
	}
	return &a
}
