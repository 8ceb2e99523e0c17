package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
	"example.com/shop/internal/order"
)

type tokenCommand struct {
	Buyers          []string      `name:"buyer" sep:"none" required:"" placeholder:"NAME" help:"Who buys: 1 to 64 letters, digits, '.', '_', '@' and '-'. Can be given again."`
	TTL             time.Duration `name:"ttl" default:"1h" help:"How long the token is good: 1s to 720h."`
	Data            string        `xor:"secret" placeholder:"DIR" help:"Data folder of a shop that made its own secret, which is then the one to use."`
	TokenSecretFile string        `xor:"secret" env:"SHOP_TOKEN_SECRET_FILE" placeholder:"FILE" help:"Secret that signs buyers' tokens, in a file of mode 0600 or 0640; or the secret itself in $$SHOP_TOKEN_SECRET."`
}

func (tokenCommand) Help() string {
	return `For development: in production, the service that knows your users mints their tokens with the same secret. A token is a JWT, signed with HS256:
  sub  the buyer
  aud  "shop:buyer"
  nbf  from when on it is good, in whole seconds since 1970
  exp  until when; at most 30 days after nbf
A token opens the buyer's orders to every client that has it, until it ends: it cannot be taken back. The tokens go to standard output, alone, each on a line, in the order of --buyer; until when they are good goes to the log.

The secret is 32 random bytes in base64 or hexadecimal digits, and is used as it is written: base64 is not decoded. With it, any buyer's token can be made.

A shop without servers makes its own: --data DIR takes it from the folder that "shop serve" names.

Examples:
  shop token --buyer ann --data ./data
  (umask 077; openssl rand -base64 32 > token.secret)
  shop token --buyer ann --token-secret-file token.secret
  SHOP_TOKEN_SECRET="$(openssl rand -base64 32)" shop token --buyer ann --ttl 15m
  (umask 077; shop token --data ./data $(seq -f --buyer=load-%g 1000) > buyers.token)`
}

func (c *tokenCommand) Run(ctx context.Context, p *program) error {
	secret, err := c.secret()
	if err == nil && secret.IsZero() {
		err = errors.New("there is no secret: add --token-secret-file FILE or --data DIR, or set SHOP_TOKEN_SECRET")
	}
	if err != nil {
		return app.UsageError{Err: err}
	}
	var lines strings.Builder
	var expires time.Time
	tokens := auth.New(secret)
	for _, buyer := range c.Buyers {
		if err := order.CheckBuyer(buyer); err != nil {
			return app.UsageError{Err: err}
		}
		token, until, err := tokens.Mint(buyer, c.TTL)
		if err != nil { // of --ttl
			return app.UsageError{Err: err}
		}
		lines.WriteString(token + "\n")
		expires = until
	}
	if _, err := fmt.Print(lines.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	p.log.InfoContext(ctx, "tokens minted", "buyers", len(c.Buyers), "good_until", expires)
	return nil
}

func (c *tokenCommand) secret() (auth.Secret, error) {
	if c.Data == "" {
		return readSecret("token-secret", c.TokenSecretFile)
	}
	if _, err := os.Stat(c.Data); err != nil {
		return auth.Secret{}, fmt.Errorf("no shop in %s: %w; check --data", c.Data, err)
	}
	return auth.ReadSecretFile(keptSecret(c.Data, "token-secret"))
}

// keptSecret is the file in the data folder in which a shop without servers keeps a secret of its own, such as token.secret.
func keptSecret(data, name string) string {
	return filepath.Join(data, strings.ReplaceAll(name, "-", "."))
}

// readSecret returns the secret in a file or an environment variable; the zero Secret if neither is set. There is no
// flag for the secret itself, because all users of the machine can see command lines in the list of processes.
func readSecret(name, file string) (secret auth.Secret, err error) {
	variable := "SHOP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	text := os.Getenv(variable)
	switch {
	case file != "" && text != "":
		err = errors.New("want one secret, not both")
	case file != "":
		secret, err = auth.ReadSecretFile(file)
	case text != "":
		secret, err = auth.NewSecret(text)
	}
	if err != nil {
		return secret, fmt.Errorf("--%s-file (%s_FILE) or %[2]s: %w", name, variable, err)
	}
	return secret, nil
}
