// Stripe is a payment service for the shop. It receives Stripe's webhooks, tells the shop what has happened to the
// payments of its orders, and refunds the payments that the shop refuses: see docs/payments.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stripe/stripe-go/v85"
)

const about = `Receives Stripe's events at POST /stripe/webhook, tells the shop about the payments of its orders, and refunds what the
shop refuses. The metadata order_id of a PaymentIntent says which order it pays.

Have Stripe send these events: payment_intent.succeeded, payment_intent.payment_failed, payment_intent.processing,
charge.refunded, refund.failed.

Environment (a variable with _FILE behind its name is the file that has the value):

  STRIPE_SECRET_KEY      Stripe's API key; a restricted one needs to write refunds, and nothing else
  STRIPE_WEBHOOK_SECRET  the signing secret of the webhook endpoint, whsec_...
  SHOP_PAYMENTS_TOKEN    the shop's payments token; a shop without servers keeps it in DIR/payments.token
  SHOP_OPERATOR_URL      the shop's operator listener (default http://127.0.0.1:8081)`

// command has the flags.
type command struct {
	Listen    string     `default:"127.0.0.1:4242" help:"Serve at this address, behind a proxy with TLS."`
	StripeURL string     `default:"https://api.stripe.com" help:"Call Stripe's API at this URL, for example at the URL of a stripe-mock."`
	LogLevel  slog.Level `default:"info" help:"Log from this level on: debug, info, warn or error."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for events
	var c command
	parsed := kong.Parse(&c, kong.Name("stripe"), kong.Description(about))
	parsed.FatalIfErrorf(c.run(ctx))
}

// run serves until ctx ends, and then lets the events in progress finish.
func (c *command) run(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: c.LogLevel}))
	s, err := newService(c.StripeURL, log)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /stripe/webhook", s.webhook)
	server := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 10*time.Second + eventTimeout, IdleTimeout: idleTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	log.Info("the payment service is open", "addr", listener.Addr().String())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventTimeout)
	defer cancel()
	return server.Shutdown(ending)
}

// newService returns a service with the secrets that the environment has.
func newService(stripeURL string, log *slog.Logger) (*service, error) {
	key, errKey := secret("STRIPE_SECRET_KEY")
	signing, errSigning := secret("STRIPE_WEBHOOK_SECRET")
	token, errToken := secret("SHOP_PAYMENTS_TOKEN")
	live := strings.Contains(key, "_live_")
	if errKey == nil && !live && !strings.Contains(key, "_test_") {
		errKey = errors.New("STRIPE_SECRET_KEY is neither a key of live mode nor of test mode")
	}
	if err := errors.Join(errKey, errSigning, errToken); err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // neither the shop nor Stripe redirects
	}}
	backends := stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL:           &stripeURL,
		HTTPClient:    client,
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull}, // refund returns what it would log
	})
	return &service{
		webhookSecret: signing,
		shopURL:       strings.TrimSuffix(cmp.Or(os.Getenv("SHOP_OPERATOR_URL"), "http://127.0.0.1:8081"), "/"),
		shopToken:     token,
		live:          live,
		client:        client,
		stripe:        stripe.NewClient(key, stripe.WithBackends(backends)),
		log:           log,
	}, nil
}

// secret returns the variable's value, or the text of the file that the variable with _FILE behind its name names. None
// is an error: with an empty webhook secret everyone could sign events.
func secret(name string) (string, error) {
	value := os.Getenv(name)
	if file := os.Getenv(name + "_FILE"); value == "" && file != "" {
		text, err := os.ReadFile(file) //nolint:gosec // the operator names the file
		if err != nil {
			return "", fmt.Errorf("%s_FILE: %w", name, err)
		}
		value = string(text)
	}
	if value = strings.TrimSpace(value); value == "" {
		return "", fmt.Errorf("%s is missing: set it, or %s_FILE (see --help)", name, name)
	}
	return value, nil
}
