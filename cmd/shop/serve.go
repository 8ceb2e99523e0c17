package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
	"example.com/shop/internal/observe/otlp"
)

type serveCommand struct {
	app.Settings      `embed:""`
	TokenSecretFile   string `group:"Security" env:"SHOP_TOKEN_SECRET_FILE" placeholder:"FILE" help:"Secret that signs buyers' tokens, in a file of mode 0600 or 0640; or the secret itself in $$SHOP_TOKEN_SECRET."`
	OperatorTokenFile string `group:"Security" env:"SHOP_OPERATOR_TOKEN_FILE" placeholder:"FILE" help:"The operator's token, in a file of mode 0600 or 0640; or the token itself in $$SHOP_OPERATOR_TOKEN."`
	PaymentsTokenFile string `group:"Security" env:"SHOP_PAYMENTS_TOKEN_FILE" placeholder:"FILE" help:"The payment service's token, by which it says on the operator's listener which orders are paid, in a file of mode 0600 or 0640; or the token itself in $$SHOP_PAYMENTS_TOKEN."`
}

func (serveCommand) Help() string {
	return `Without --mysql the shop keeps a SQLite file, in a temporary folder that is removed at the end or in --data DIR. Without --redis its locks and rate limits are in this process, also with --mysql; the strategy redis needs one, and several instances one that they share. Empty variables are ignored. A new SQLite file gets three demo SKUs to sell, unless it has others (shop seed). SIGTERM or Ctrl-C: readiness fails, orders in flight finish, exit 0; a second one cuts them off.

Buyers show a token (see shop token --help). The operator creates and restocks SKUs, audits, and reads metrics and profiles on a listener of its own, with a token of its own. There, a payment service says which orders are paid, with a third token (docs/payments.md).

Without --mysql and --redis the shop makes the secrets and prints the tokens; with --data they stay good, in token.secret, operator.token and payments.token there; and buyers may pay by their own word, if the shop made the secret of their tokens. --operator-listen is then 127.0.0.1 and the port after that of --listen, if not given. With --mysql or --redis the shop wants --token-secret-file, for the operator's API --operator-listen and --operator-token-file, and for payments --payments-token-file; the same secrets for all instances. A secret is 32 random bytes in base64 or hexadecimal digits.

The nightly audit leaves MySQL two minutes for each statement: a large shop has --reconcile-at off, and runs shop audit from a timer, with readTimeout=1h in its DSN. An audit that fails is repeated.

OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 sends traces there, by OTLP over HTTP; OpenTelemetry's other standard variables (OTEL_) count as well.

Examples:
  shop serve                       try it: nothing to install
  shop serve --data ./data         the same, and keep the orders and tokens
  (umask 077; openssl rand -base64 32 > token.secret; openssl rand -base64 32 > operator.token; openssl rand -base64 32 > payments.token)
  shop serve --mysql 'shop:secret@tcp(db:3306)/shop' --mysql-ca ca.pem --redis redis:6379 --redis-ca ca.pem --listen :8080 --token-secret-file token.secret --operator-listen 127.0.0.1:8081 --operator-token-file operator.token --payments-token-file payments.token

The last one talks TLS with both servers: one with another certificate, or none, is refused at the start.`
}

// Run serves until ctx ends or the shop fails.
func (s *serveCommand) Run(ctx context.Context, p *program) error {
	s.Log = p.log
	return app.Serve(ctx, &s.Settings, func(temporary bool) (app.Running, error) {
		made, err := s.secrets()
		if err != nil {
			return nil, err
		}
		if s.Data != "" {
			if err := p.prepareFolder(ctx, s.DatabaseSettings); err != nil {
				return nil, err
			}
		}
		spans, err := otlp.Exporter(ctx)
		if err != nil {
			return nil, err
		}
		shop, err := app.Start(ctx, s.Settings, app.Hooks{Spans: spans})
		if err != nil {
			return nil, err
		}
		if !p.json { // a program that reads JSON has the line "shop is open" of the log
			fmt.Print(s.greeting(shop, temporary, made))
		}
		return shop, nil
	})
}

// secrets reads the given secrets, and makes the missing ones of a shop without servers. made is the greeting's tokens.
func (s *serveCommand) secrets() (made string, err error) {
	withoutServers := s.MySQL == "" && s.Redis == ""
	if withoutServers {
		s.OperatorListen = cmp.Or(s.OperatorListen, nextPort(s.Listen))
	}
	for _, c := range []struct {
		secret            *auth.Secret
		name, file, shown string
	}{
		{&s.OperatorToken, "operator-token", s.OperatorTokenFile, "OPERATOR"},
		{&s.PaymentsToken, "payments-token", s.PaymentsTokenFile, "PAYMENTS"},
		{&s.TokenSecret, "token-secret", s.TokenSecretFile, "TOKEN"},
	} {
		if *c.secret, err = readSecret(c.name, c.file); err != nil {
			return "", app.UsageError{Err: err}
		}
		if !withoutServers || !c.secret.IsZero() {
			continue
		}
		if *c.secret, err = auth.KeptSecret(keptSecret(s.Data, c.name)); err != nil {
			return "", fmt.Errorf("%s: %w", c.name, err)
		}
		token := c.secret.Reveal()
		if c.secret == &s.TokenSecret {
			s.BuyersPay = true
			if token, _, err = auth.New(s.TokenSecret).Mint("ann", 24*time.Hour); err != nil {
				return "", err
			}
		}
		made += fmt.Sprintf("  %s='%s'\n", c.shown, token)
	}
	return made, nil
}

// greeting is printed when the shop is open.
func (s *serveCommand) greeting(shop *app.Shop, temporary bool, made string) string {
	text := fmt.Sprintf("The shop is open at %s\n", shop.URL())
	if operator := shop.OperatorAddr(); operator != "" {
		text += fmt.Sprintf("The operator's API is at http://%s\n", operator)
	} else {
		text += "It has no operator's API: --operator-listen adds one, with metrics.\n"
	}
	switch {
	case temporary:
		text += fmt.Sprintf("Its data is in %s and is removed at the end.\n", s.Data)
	case s.Data != "":
		text += fmt.Sprintf("Its data is kept in %s\n", s.Data)
	}
	if s.Redis == "" {
		text += "Its locks are in this process: a second shop on its data needs a --redis that both share.\n"
	}
	if made != "" {
		text += "\nThe tokens of the operator, of a payment service and, for a day, of the buyer ann, as in the session of docs/api.md:\n" + made
	}
	if s.BuyersPay && !temporary { // by the secret in its folder
		text += fmt.Sprintf("For other buyers: shop token --data %s --buyer NAME\n", s.Data)
	}
	return text + "\nStop it with Ctrl-C or SIGTERM.\n"
}

// nextPort returns the default of the operator's address: on this machine alone, at the port after the shop's, or at a
// free one if the shop is at one.
func nextPort(listen string) string {
	_, text, _ := net.SplitHostPort(listen)
	port, _ := strconv.Atoi(text) // Check refuses an invalid address
	if port == 0 || port == math.MaxUint16 {
		return "127.0.0.1:0"
	}
	return fmt.Sprintf("127.0.0.1:%d", port+1)
}
