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
	Buyers          []string      `name:"buyer" sep:"none" required:"" placeholder:"NAME" help:"Name of the buyer: 1 to 64 letters, digits, '.', '_', '@', '-', the first a letter or a digit. Repeat the flag for more buyers."`
	TTL             time.Duration `name:"ttl" default:"1h" help:"How long the tokens are valid: 1s to 720h."`
	Data            string        `xor:"secret" placeholder:"DIR" help:"Data folder of a shop that made its own secret."`
	TokenSecretFile string        `xor:"secret" env:"SHOP_TOKEN_SECRET_FILE" placeholder:"FILE" help:"File of mode 0600 or 0640 with the secret that signs buyers' tokens. Or put the secret itself into $$SHOP_TOKEN_SECRET."`
}

func (tokenCommand) Help() string {
	return `This command is for development. In production, the service that knows your users mints their tokens with the
same secret. A token is a JWT, signed with HS256:
  sub  the buyer, a name as --buyer takes it
  aud  "shop:buyer"
  nbf  start of its validity, in whole seconds since 1970
  exp  end of its validity, at most 30 days after nbf
Until it expires, a token gives every client that has it access to the buyer's orders: it cannot be revoked. Standard
output gets the tokens only, one on each line, in the order of --buyer. The log says when they expire.

The secret is 32 random bytes in base64 or hexadecimal digits. It is used as it is written: base64 is not decoded.
Whoever has the secret can make a token for any buyer.

A shop without servers makes its own secret: --data DIR reads the secret from the folder that "shop serve" names.

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
		err = errors.New("the secret is missing: add --token-secret-file FILE or --data DIR, or set SHOP_TOKEN_SECRET")
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

// keptSecret returns the file of the data folder in which a shop without servers keeps a secret, such as token.secret.
func keptSecret(data, name string) string {
	return filepath.Join(data, strings.ReplaceAll(name, "-", "."))
}

// readSecret returns the secret in a file or an environment variable, or the zero Secret if neither is set. No flag
// takes the secret itself, because all users of the machine can see command lines in the list of processes.
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
