package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"
)

// programs is the folder of shop, stripe (the payment service) and stripe-mock: the test runs real processes.
var programs string

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "stripe-test-"); err == nil {
		err = errors.Join(build("-C", "../..", "-o", programs, "./cmd/shop"), build("-o", programs, ".", "github.com/stripe/stripe-mock"))
	}
	code := 1
	if err == nil {
		code = m.Run()
	}
	if err := errors.Join(err, os.RemoveAll(programs)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // this is the test binary's main
}

func build(args ...string) error {
	out, err := exec.CommandContext(context.Background(), "go", slices.Concat([]string{"build"}, args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build %s: %w\n%s", args, err, out)
	}
	return nil
}

// The service handles Stripe's events about the payments of orders, from the first event to the refund.
func TestService(t *testing.T) {
	s := open(t)

	t.Run("paid, once and again", func(t *testing.T) {
		order := s.order(t)
		s.send(t, succeeded("evt_paid", "pi_paid", order, 1250), http.StatusOK)
		s.wantOrder(t, order, "paid")
		s.send(t, succeeded("evt_paid", "pi_paid", order, 1250), http.StatusOK)
		s.wantOrder(t, order, "paid")
		s.wantRefunds(t, "pi_paid")
	})

	t.Run("a second payment of a paid order is refunded once", func(t *testing.T) {
		order := s.order(t)
		s.send(t, succeeded("evt_first", "pi_first", order, 1250), http.StatusOK)
		s.send(t, succeeded("evt_second", "pi_second", order, 1250), http.StatusOK)
		s.wantOrder(t, order, "paid")
		s.wantRefunds(t, "pi_first")
		s.wantRefunds(t, "pi_second", "evt_second")
		s.wantRefused(t, "pi_second", "already-paid")

		// Stripe answers a repeated idempotency key as before, and refunds nothing.
		s.send(t, succeeded("evt_second", "pi_second", order, 1250), http.StatusOK)
		s.wantRefunds(t, "pi_second", "evt_second", "evt_second")

		s.send(t, refunded("evt_part", "pi_second", order, false), http.StatusOK)
		s.wantRefused(t, "pi_second", "already-paid")
		s.send(t, refunded("evt_whole", "pi_second", order, true), http.StatusOK)
		s.wantRefused(t, "pi_second", "")
	})

	t.Run("another amount is refunded, and the order still waits", func(t *testing.T) {
		order := s.order(t)
		s.send(t, succeeded("evt_less", "pi_less", order, 1249), http.StatusOK)
		s.wantOrder(t, order, "pending")
		s.wantRefunds(t, "pi_less", "evt_less")
		s.wantRefused(t, "pi_less", "amount-mismatch")
	})

	t.Run("a payment of a cancelled order is refunded", func(t *testing.T) {
		order := s.order(t)
		s.call(t, s.shopURL, s.buyer, http.MethodPost, "/v1/orders/"+order+"/cancel", "")
		s.send(t, succeeded("evt_late", "pi_late", order, 1250), http.StatusOK)
		s.wantOrder(t, order, "cancelled")
		s.wantRefunds(t, "pi_late", "evt_late")
	})

	t.Run("a payment that was refunded by hand needs no refund", func(t *testing.T) {
		order := s.order(t)
		s.stripe.answer(http.StatusBadRequest, `{"error":{"type":"invalid_request_error","code":"charge_already_refunded","message":"already"}}`)
		s.send(t, succeeded("evt_by_hand", "pi_by_hand", order, 1), http.StatusOK)
		s.stripe.answer(0, "")
	})

	t.Run("a refund that fails is made when the event comes again", func(t *testing.T) {
		order := s.order(t)
		s.stripe.answer(http.StatusServiceUnavailable, `{"error":{"type":"api_error","message":"down"}}`)
		s.send(t, succeeded("evt_fails", "pi_fails", order, 1), http.StatusServiceUnavailable)
		s.stripe.answer(0, "")
		s.send(t, succeeded("evt_fails", "pi_fails", order, 1), http.StatusOK)
		s.wantRefunds(t, "pi_fails", "evt_fails", "evt_fails")
	})

	t.Run("failed, then paid", func(t *testing.T) {
		order := s.order(t)
		s.send(t, intent("evt_failed", stripe.EventTypePaymentIntentPaymentFailed, "pi_again", order, 0), http.StatusOK)
		s.wantOrder(t, order, "pending")
		s.send(t, succeeded("evt_again", "pi_again", order, 1250), http.StatusOK)
		s.wantOrder(t, order, "paid")
	})

	t.Run("processing extends once; not an order that has ended", func(t *testing.T) {
		order := s.order(t)
		before := s.wantOrder(t, order, "pending")
		for range 2 {
			s.send(t, intent("evt_processing", stripe.EventTypePaymentIntentProcessing, "pi_slow", order, 0), http.StatusOK)
			if got, want := s.wantOrder(t, order, "pending"), before.Add(15*time.Minute); !got.Equal(want) {
				t.Errorf("got an order that expires at %v, want %v", got, want)
			}
		}
		s.send(t, succeeded("evt_slow", "pi_slow", order, 1250), http.StatusOK)
		s.send(t, intent("evt_overtaken", stripe.EventTypePaymentIntentProcessing, "pi_slow", order, 0), http.StatusOK)
		s.wantOrder(t, order, "paid")
	})

	t.Run("a refund that comes back failed, or that waits", func(t *testing.T) {
		order := s.order(t)
		s.stripe.answer(http.StatusOK, `{"id":"re_1","object":"refund","status":"failed","failure_reason":"expired_or_canceled_card"}`)
		s.send(t, succeeded("evt_failed_refund", "pi_failed_refund", order, 1), http.StatusServiceUnavailable)
		s.stripe.answer(http.StatusOK, `{"id":"re_1","object":"refund","status":"pending"}`)
		s.send(t, succeeded("evt_failed_refund", "pi_failed_refund", order, 1), http.StatusOK)
		s.stripe.answer(0, "")
	})

	t.Run("a refund that fails later is owed again", func(t *testing.T) {
		order := s.order(t)
		s.send(t, succeeded("evt_short", "pi_owed", order, 1), http.StatusOK)
		for _, kind := range []stripe.EventType{stripe.EventTypeRefundFailed, stripe.EventTypeRefundUpdated,
			stripe.EventTypeChargeRefundUpdated} {
			s.send(t, refunded("evt_refunded", "pi_owed", order, true), http.StatusOK)
			s.send(t, refund("evt_pending", stripe.EventTypeRefundUpdated, "pi_owed", "pending"), http.StatusOK)
			s.wantRefused(t, "pi_owed", "")
			s.send(t, refund("evt_refund_failed", kind, "pi_owed", "failed"), http.StatusOK)
			s.wantRefused(t, "pi_owed", "amount-mismatch")
		}
	})

	t.Run("a refund before its payment", func(t *testing.T) {
		order := s.order(t)
		s.send(t, refunded("evt_early", "pi_early", order, true), http.StatusOK)
		s.send(t, succeeded("evt_overtaken", "pi_early", order, 1250), http.StatusOK)
		s.wantOrder(t, order, "pending")
		s.wantRefunds(t, "pi_early")
	})

	t.Run("what is not the shop's is acknowledged, and pays nothing", func(t *testing.T) {
		for _, order := range []string{"", "1042", "wc_order_9f", "..", "01a2250a-899b-760b-98b1-c6aa17753fbf"} {
			for _, event := range [][]byte{
				succeeded("evt_foreign", "pi_foreign", order, 1250),
				intent("evt_foreign", stripe.EventTypePaymentIntentPaymentFailed, "pi_foreign", order, 0),
				intent("evt_foreign", stripe.EventTypePaymentIntentProcessing, "pi_foreign", order, 0),
				refunded("evt_foreign", "pi_foreign", order, true),
				refunded("evt_no_intent", "", order, true),
			} {
				s.send(t, event, http.StatusOK)
			}
		}
		s.wantRefunds(t, "pi_foreign")
		s.send(t, refund("evt_foreign", stripe.EventTypeRefundFailed, "pi_unknown", "failed"), http.StatusOK)
		s.send(t, refund("evt_no_intent", stripe.EventTypeRefundFailed, "", "failed"), http.StatusOK)
		for _, live := range []string{"", `,"livemode":true`} {
			s.send(t, []byte(`{"id":"evt_empty","object":"event","type":"payment_intent.succeeded"`+live+`}`), http.StatusOK)
		}

		order := s.order(t)
		s.send(t, intent("evt_created", stripe.EventTypePaymentIntentCreated, "pi_created", order, 0), http.StatusOK)
		s.send(t, with(succeeded("evt_connected", "pi_connected", order, 1250), `"account":"acct_1"`), http.StatusOK)
		s.wantOrder(t, order, "pending")
	})

	t.Run("another mode", func(t *testing.T) {
		order := s.order(t)
		s.send(t, with(succeeded("evt_live", "pi_live", order, 1250), `"livemode":true`), http.StatusServiceUnavailable)
		testMode := s.serviceURL
		defer func() { s.serviceURL = testMode }()
		s.openService(t, "sk_live_123")
		s.send(t, succeeded("evt_test", "pi_test", order, 1250), http.StatusOK)
		s.wantOrder(t, order, "pending")
		s.send(t, with(succeeded("evt_live", "pi_live", order, 1250), `"livemode":true`), http.StatusOK)
		s.wantOrder(t, order, "paid")
	})

	t.Run("a wrong signature, or none", func(t *testing.T) {
		order := s.order(t)
		event := succeeded("evt_forged", "pi_forged", order, 1250)
		forged := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: event, Secret: "whsec_other"})
		s.post(t, event, forged.Header, http.StatusBadRequest)
		s.post(t, event, "", http.StatusBadRequest)
		s.post(t, bytes.Repeat([]byte(" "), maxBody+1), "", http.StatusBadRequest)
		s.wantOrder(t, order, "pending")
	})

	t.Run("the shop is away, and comes back", func(t *testing.T) {
		order := s.order(t)
		s.shop.stop(t)
		s.send(t, succeeded("evt_away", "pi_away", order, 1250), http.StatusServiceUnavailable)
		for _, answer := range []http.Handler{
			http.RedirectHandler("/maintenance", http.StatusFound), page(200, "<html>We are back soon.</html>"), page(200, "{}"),
			page(200, `{"id":"`+order+`","status":"pending"}`), page(404, `{"type":"not-found"}`), page(503, `{"refund":true}`),
		} {
			listener, err := net.Listen("tcp", strings.TrimPrefix(s.backURL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			proxy := &httptest.Server{Listener: listener, Config: &http.Server{Handler: answer}}
			proxy.Start()
			s.send(t, succeeded("evt_away", "pi_away", order, 1250), http.StatusServiceUnavailable)
			proxy.Close()
		}
		s.wantRefunds(t, "pi_away")
		s.openShop(t)
		s.send(t, succeeded("evt_away", "pi_away", order, 1250), http.StatusOK)
		s.wantOrder(t, order, "paid")
	})
}

// page is the answer of a proxy in place of the shop.
func page(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// "A test runs this and compares what it prints": the last session of docs/payments.md.
func TestSession(t *testing.T) {
	page, err := os.ReadFile("../../docs/payments.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```sh\n")
	session, _, _ := strings.Cut(rest, "```\n")
	var want strings.Builder
	for _, printed := range regexp.MustCompile(`(?m)^# prints: (.*\n)`).FindAllStringSubmatch(session, -1) {
		want.WriteString(printed[1])
	}
	s := open(t)
	here := strings.NewReplacer("http://127.0.0.1:8080", s.shopURL, "http://127.0.0.1:8081", s.backURL, "http://127.0.0.1:4242", s.serviceURL)
	sh := exec.CommandContext(t.Context(), "sh", "-euc", here.Replace(session))
	sh.Env = append(os.Environ(), "OPERATOR="+s.operator, "TOKEN="+s.buyer, "STRIPE_WEBHOOK_SECRET="+webhookSecret)
	out, err := sh.CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got == "" || got != strings.TrimSpace(want.String()) {
		t.Errorf("got %v\n%s\nwant, by docs/payments.md,\n%s", err, got, want.String())
	}
	s.wantRefunds(t, "pi_2", "evt_2")
}

// A service without a secret, or with another one in its place, does not start, and says which.
func TestService_secrets(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), filepath.Join(programs, "stripe"))
	c.Env = []string{"STRIPE_SECRET_KEY=pk_123", "STRIPE_WEBHOOK_SECRET= ", "SHOP_PAYMENTS_TOKEN_FILE=/nowhere"}
	out, err := c.CombinedOutput()
	for _, want := range []string{"STRIPE_SECRET_KEY is neither", "STRIPE_WEBHOOK_SECRET is missing",
		"SHOP_PAYMENTS_TOKEN_FILE: open /nowhere"} {
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("got %v, %s, want an error with %q", err, out, want)
		}
	}
}

// event returns an event as Stripe sends it.
func event(id string, kind stripe.EventType, object map[string]any) []byte {
	text, err := json.Marshal(map[string]any{
		"id": id, "object": "event", "type": kind, "api_version": stripe.APIVersion, "data": map[string]any{"object": object},
	})
	if err != nil {
		panic(err)
	}
	return text
}

// intent returns an event of a PaymentIntent for an order. Without an order, the PaymentIntent is another program's.
func intent(id string, kind stripe.EventType, paymentID, order string, received int64) []byte {
	return event(id, kind, map[string]any{
		"id": paymentID, "object": "payment_intent", "amount": 1250, "amount_received": received, "currency": "eur", "metadata": metadata(order),
	})
}

func succeeded(id, paymentID, order string, received int64) []byte {
	return intent(id, stripe.EventTypePaymentIntentSucceeded, paymentID, order, received)
}

// with returns an event with one more field.
func with(event []byte, field string) []byte {
	return bytes.Replace(event, []byte("{"), []byte("{"+field+","), 1)
}

// refund is the event of a refund, which was made by hand: its metadata names no order.
func refund(id string, kind stripe.EventType, paymentID, status string) []byte {
	return event(id, kind, map[string]any{"id": "re_1", "object": "refund", "payment_intent": paymentID,
		"status": status, "metadata": metadata("")})
}

// refunded is the event of a charge that was refunded, in full or in part.
func refunded(id, paymentID, order string, whole bool) []byte {
	return event(id, stripe.EventTypeChargeRefunded, map[string]any{
		"id": "ch_1", "object": "charge", "payment_intent": paymentID, "refunded": whole, "metadata": metadata(order),
	})
}

func metadata(order string) map[string]string {
	if order == "" {
		return map[string]string{}
	}
	return map[string]string{"order_id": order}
}

// system is a shop, a payment service that knows it, and Stripe's mock behind a recorder.
type system struct {
	data             string // the shop's folder
	shop             *process
	shopURL, backURL string // where buyers and the operator reach the shop
	buyer, operator  string // tokens
	serviceURL       string
	stripe           *recorder
}

const webhookSecret = "whsec_test"

func open(t *testing.T) *system {
	t.Helper()
	s := &system{data: t.TempDir(), backURL: "127.0.0.1:0", stripe: startStripe(t)}
	s.openShop(t)
	s.openService(t, "sk_test_123")
	return s
}

// openService starts a payment service with a key of Stripe's API.
func (s *system) openService(t *testing.T, key string) {
	t.Helper()
	service := start(t, []string{
		"STRIPE_SECRET_KEY=" + key, "STRIPE_WEBHOOK_SECRET=" + webhookSecret,
		"SHOP_OPERATOR_URL=" + s.backURL, "SHOP_PAYMENTS_TOKEN_FILE=" + filepath.Join(s.data, "payments.token"),
	}, "stripe", "--listen", "127.0.0.1:0", "--stripe-url", s.stripe.URL)
	s.serviceURL = "http://" + service.wait(t, `the payment service is open" addr=(\S+)`)
}

// openShop starts the shop, the second time where the service expects its operator's listener.
func (s *system) openShop(t *testing.T) {
	t.Helper()
	s.shop = start(t, nil, "shop", "serve", "--data", s.data, "--listen", "127.0.0.1:0", "--operator-listen",
		strings.TrimPrefix(s.backURL, "http://"))
	s.shopURL = s.shop.wait(t, `The shop is open at (\S+)`)
	s.backURL = s.shop.wait(t, `The operator's API is at (\S+)`)
	s.operator = s.shop.wait(t, ` OPERATOR='(.*)'`)
	s.buyer = s.shop.wait(t, ` TOKEN='(.*)'`)
}

// order places an order of 12.50 EUR and returns its id.
func (s *system) order(t *testing.T) string {
	t.Helper()
	return s.call(t, s.shopURL, s.buyer, http.MethodPost, "/v1/orders", `{"lines":[{"sku":"demo-mug","quantity":1}]}`)["id"].(string)
}

// wantOrder fails unless the order has the status. It returns when the order expires.
func (s *system) wantOrder(t *testing.T, id, status string) time.Time {
	t.Helper()
	order := s.call(t, s.shopURL, s.buyer, http.MethodGet, "/v1/orders/"+id, "")
	if order["status"] != status {
		t.Fatalf("got %v, want %s", order, status)
	}
	text, _ := order["expires_at"].(string)
	expires, _ := time.Parse(time.RFC3339, text)
	return expires
}

// wantRefused fails unless the operator's list of refused payments that are to be refunded has this one with the
// refusal; without a refusal, unless the list lacks the payment.
func (s *system) wantRefused(t *testing.T, paymentID, refusal string) {
	t.Helper()
	got := ""
	list := s.call(t, s.backURL, s.operator, http.MethodGet, "/v1/payments?refused=true", "")
	for _, payment := range list["payments"].([]any) {
		if payment := payment.(map[string]any); payment["payment_id"] == paymentID {
			got = payment["refusal"].(string)
		}
	}
	if got != refusal {
		t.Errorf("got %s with refusal %q in %v, want %q", paymentID, got, list, refusal)
	}
}

// wantRefunds fails unless Stripe was asked to refund the payment with these idempotency keys.
func (s *system) wantRefunds(t *testing.T, paymentID string, keys ...string) {
	t.Helper()
	s.stripe.mu.Lock()
	defer s.stripe.mu.Unlock()
	if got := s.stripe.refunds[paymentID]; !slices.Equal(got, keys) {
		t.Errorf("got refunds of %s with idempotency keys %q, want %q", paymentID, got, keys)
	}
}

// send posts an event with Stripe's signature.
func (s *system) send(t *testing.T, event []byte, status int) {
	t.Helper()
	s.post(t, event, webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: event, Secret: webhookSecret}).Header, status)
}

func (s *system) post(t *testing.T, event []byte, signature string, status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.serviceURL+"/stripe/webhook", bytes.NewReader(event))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Stripe-Signature", signature)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != status {
		t.Fatalf("got %d %s, want %d of\n%.500s", answer.StatusCode, text, status, event)
	}
}

// call calls the shop and fails unless the answer is a 2xx.
func (s *system) call(t *testing.T, shop, token, method, path, body string) map[string]any {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, shop+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", fmt.Sprint(time.Now().UnixNano()))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var object map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&object); err != nil || answer.StatusCode/100 != 2 {
		t.Fatalf("%s %s: got %d %v %v", method, path, answer.StatusCode, object, err)
	}
	return object
}

// recorder passes requests on to stripe-mock, which keeps nothing, and remembers the refunds.
type recorder struct {
	*httptest.Server
	mu      sync.Mutex
	refunds map[string][]string // idempotency keys, by the PaymentIntent
	status  int                 // if it is not 0, answer with it and this text
	text    string
}

func startStripe(t *testing.T) *recorder {
	t.Helper()
	mock := start(t, nil, "stripe-mock", "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	target, err := url.Parse("http://" + mock.wait(t, `Listening for HTTP at address: (\S+)`))
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{refunds: map[string][]string{}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		request.Body = io.NopCloser(bytes.NewReader(body))
		form, _ := url.ParseQuery(string(body))
		r.mu.Lock()
		status, text := r.status, r.text
		if request.URL.Path == "/v1/refunds" {
			id := form.Get("payment_intent")
			r.refunds[id] = append(r.refunds[id], request.Header.Get("Idempotency-Key"))
		}
		r.mu.Unlock()
		if status == 0 {
			proxy.ServeHTTP(w, request)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(r.Close)
	return r
}

// answer has Stripe answer so from now on; with status 0, as the mock does.
func (r *recorder) answer(status int, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.text = status, text
}

// process is a running program and what it has printed.
type process struct {
	command *exec.Cmd
	ended   chan struct{}
	mu      sync.Mutex
	output  bytes.Buffer
}

func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(text)
}

// start starts a program. Of the variables of the shop and of Stripe, the program has only the given variables. It is
// stopped at the end of the test.
func start(t *testing.T, variables []string, name string, args ...string) *process {
	t.Helper()
	p := &process{command: exec.CommandContext(context.Background(), filepath.Join(programs, name), args...), ended: make(chan struct{})}
	p.command.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "SHOP_") || strings.HasPrefix(variable, "STRIPE_")
	}), variables...)
	p.command.Stdout, p.command.Stderr = p, p
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("%s printed\n%s", name, p.output.String())
		}
	})
	return p
}

// wait waits until the program prints what the pattern matches, and returns its group.
func (p *process) wait(t *testing.T, pattern string) string {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		p.mu.Lock()
		found := regexp.MustCompile(pattern).FindSubmatch(p.output.Bytes())
		p.mu.Unlock()
		if found != nil {
			return string(found[1])
		}
		select {
		case <-p.ended:
			t.Fatalf("%s ended: it printed\n%s", p.command, p.output.String())
		default:
		}
	}
	t.Fatalf("%s does not print %q", p.command, pattern)
	return ""
}

// stop stops the program as an operator does, and waits for its end.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.ended
}
