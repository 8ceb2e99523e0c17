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
	TokenSecretFile   string `group:"Security" env:"SHOP_TOKEN_SECRET_FILE" placeholder:"FILE" help:"File of mode 0600 or 0640 with the secret that signs buyers' tokens. Or put the secret itself into $$SHOP_TOKEN_SECRET."`
	OperatorTokenFile string `group:"Security" env:"SHOP_OPERATOR_TOKEN_FILE" placeholder:"FILE" help:"File of mode 0600 or 0640 with the operator's token. Or put the token itself into $$SHOP_OPERATOR_TOKEN."`
	PaymentsTokenFile string `group:"Security" env:"SHOP_PAYMENTS_TOKEN_FILE" placeholder:"FILE" help:"File of mode 0600 or 0640 with the token of the payment service, which reports paid orders on the operator's listener. Or put the token itself into $$SHOP_PAYMENTS_TOKEN."`
}

func (serveCommand) Help() string {
	return `Without --mysql, the data is a SQLite file in --data DIR or, without that flag, in a temporary folder that is
removed at the end. If the file has no SKU yet (see shop seed), the shop creates three demo SKUs. Without --redis,
locks and rate limits are in this process, even with --mysql. The strategy redis needs a Redis, and several instances
need one Redis that they share. Empty variables are ignored.

After SIGTERM or Ctrl-C, readiness fails, the orders in flight finish, and the shop exits with 0. A second signal aborts them.

Buyers show a token (see shop token --help). The operator's API has a listener and a token of its own: the operator
creates and restocks SKUs, audits, and reads metrics and profiles. On the same listener, with a third token, a payment
service reports which orders are paid (docs/payments.md).

Without --mysql and --redis, the shop makes the secrets that are missing and prints the tokens. With --data it keeps
them in that folder, as token.secret, operator.token and payments.token, for the next start. If the shop made both the
secret of buyers' tokens and the payments token, buyers may pay without a payment service. The default of
--operator-listen is then 127.0.0.1 with the next port after --listen.

With --mysql or --redis, --token-secret-file is required. The operator's API needs --operator-listen and
--operator-token-file, and payments need --payments-token-file. All instances take the same secrets. A secret is 32
random bytes in base64 or hexadecimal digits.

OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 sends traces to that collector, by OTLP over HTTP. OpenTelemetry's
other standard variables (OTEL_) are also read.

Examples:
  shop serve                       try the shop without other servers
  shop serve --data ./data         keep the orders and tokens for the next start
  (umask 077; openssl rand -base64 32 > token.secret; openssl rand -base64 32 > operator.token; openssl rand -base64 32 > payments.token)
  shop serve --listen :8080 --mysql 'shop:secret@tcp(db:3306)/shop' --mysql-ca ca.pem \
      --redis redis:6379 --redis-ca ca.pem --token-secret-file token.secret \
      --operator-listen 127.0.0.1:8081 --operator-token-file operator.token --payments-token-file payments.token

The last example requires TLS of both servers. The shop does not start if a server has no certificate, or one that the CA did not sign.`
}

// Run serves until ctx ends or the shop fails.
func (s *serveCommand) Run(ctx context.Context, p *program) error {
	s.Log = p.log
	return app.Serve(ctx, &s.Settings, func(temporary bool) (app.Running, error) {
		made, err := s.secrets(temporary)
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
		if !p.json { // programs that read JSON find the line "shop is open" in the log
			fmt.Print(s.greeting(shop, temporary, made))
		}
		return shop, nil
	})
}

// secrets reads the given secrets. Without servers, it makes missing ones, and made lists the tokens.
// If it makes both the secret of buyers' tokens and the payments token, the shop is a demonstration:
// buyers may pay without a payment service.
func (s *serveCommand) secrets(temporary bool) (made string, err error) {
	madePayments := false
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
		token, others := c.secret.Reveal(), ""
		switch c.secret {
		case &s.PaymentsToken:
			madePayments = true
		case &s.TokenSecret:
			s.BuyersPay = madePayments
			if token, _, err = auth.New(s.TokenSecret).Mint("ann", 24*time.Hour); err != nil {
				return "", err
			}
			if !temporary { // the folder keeps the secret
				others = fmt.Sprintf("For other buyers: shop token --data %s --buyer NAME\n", s.Data)
			}
		}
		made += fmt.Sprintf("  %s='%s'\n%s", c.shown, token, others)
	}
	return made, nil
}

// greeting is printed when the shop is open.
func (s *serveCommand) greeting(shop *app.Shop, temporary bool, made string) string {
	text := fmt.Sprintf("The shop is open at %s\n", shop.URL())
	if operator := shop.OperatorAddr(); operator != "" {
		text += fmt.Sprintf("The operator's API is at http://%s\n", operator)
	} else {
		text += "Add --operator-listen to open the operator's API, with metrics.\n"
	}
	switch {
	case temporary:
		text += fmt.Sprintf("The data is in %s and is removed at the end.\n", s.Data)
	case s.Data != "":
		text += fmt.Sprintf("The data is kept in %s\n", s.Data)
	}
	if s.Redis == "" {
		text += "The locks are in this process: a second shop on the same data needs a --redis that both share.\n"
	}
	if made != "" {
		text += "\nThe tokens of the operator, of a payment service and, for a day, of the buyer ann, as in the session of docs/api.md:\n" + made
	}
	return text + "\nStop it with Ctrl-C or SIGTERM.\n"
}

// nextPort returns the operator's default address: 127.0.0.1 with the next port, or a free port if the shop takes one.
func nextPort(listen string) string {
	_, text, _ := net.SplitHostPort(listen)
	port, _ := strconv.Atoi(text) // Check refuses an invalid address
	if port == 0 || port == math.MaxUint16 {
		return "127.0.0.1:0"
	}
	return fmt.Sprintf("127.0.0.1:%d", port+1)
}
