package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"example.com/shop/internal/auth"
	"example.com/shop/internal/order"
)

type tokenCommand struct {
	Buyer      string        `required:"" placeholder:"NAME" help:"Who buys: 1 to 64 letters, digits, '.', '_', '@' and '-'."`
	TTL        time.Duration `name:"ttl" default:"1h" help:"How long the token is good: 1s to 720h."`
	Data       string        `placeholder:"DIR" help:"Data folder of a shop that made its own secret, which is then the one to use."`
	tokenFlags `embed:""`
}

// Help is shown below the flags.
func (tokenCommand) Help() string {
	return `For development: in production, what knows your users mints their tokens with the same secret. A token is a JWT, signed with HS256:
  sub  the buyer
  aud  "shop:buyer"
  nbf  from when on it is good, in whole seconds since 1970
  exp  until when; at most 30 days after nbf
Whoever has it is the buyer until it ends: it cannot be taken back. The token goes to standard output, alone; until when it is good goes to the log.

The secret has 32 to 1024 printable ASCII characters, and is used as it is written: base64 is not decoded. Those that tutorials publish are refused. Whoever has it can be any buyer.

A shop without servers makes its own: --data DIR takes it from the folder that "shop serve" names.

Examples:
  shop token --buyer ann --data ./data
  (umask 077; openssl rand -base64 32 > token.secret)
  shop token --buyer ann --token-secret-file token.secret
  SHOP_TOKEN_SECRET="$(openssl rand -base64 32)" shop token --buyer ann --ttl 15m`
}

// Run mints a token.
func (c *tokenCommand) Run(ctx context.Context, p *program) error {
	secret, err := c.read()
	if err != nil {
		return usage("token", err)
	}
	tokens, err := auth.New(secret)
	if errors.Is(err, auth.ErrSecretNone) {
		err = fmt.Errorf("%w: add --token-secret-file FILE or --data DIR, or set SHOP_TOKEN_SECRET", err)
	}
	if err != nil {
		return usage("token", err)
	}
	token, expires, err := tokens.Mint(c.Buyer, c.TTL)
	if errors.Is(err, order.ErrBuyer) || errors.Is(err, auth.ErrLifetime) {
		return usage("token", err)
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(p.stdout, token); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	p.log.InfoContext(ctx, "token minted", "buyer", c.Buyer, "good_until", expires)
	return nil
}

// read returns the secret that the flags name. A data folder stands before the
// variables of the others.
func (c *tokenCommand) read() (auth.Secret, error) {
	if c.Data != "" {
		if _, err := os.Stat(c.Data); err != nil {
			return auth.Secret{}, fmt.Errorf("no shop in %s: %w; check --data", c.Data, err)
		}
		return auth.ReadSecretFile(filepath.Join(c.Data, tokenSecretFile))
	}
	return c.secret()
}
