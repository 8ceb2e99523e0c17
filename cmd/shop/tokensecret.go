package main

import (
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/auth"
)

// tokenFlags say which secret signs buyers' tokens.
type tokenFlags struct {
	TokenSecretFile string     `placeholder:"FILE" help:"Secret that signs buyers' tokens, in a file of mode 0600 or 0640; or the secret itself in $$SHOP_TOKEN_SECRET." variable:"SHOP_TOKEN_SECRET_FILE" rival:"token-secret"`
	TokenSecret     secretText `hidden:"" variable:"SHOP_TOKEN_SECRET" rival:"token-secret-file"`
}

// secretText is a flag that only its variable may set: the command line stands in
// the list of processes, for everybody on the machine.
type secretText string

// AfterApply refuses it where it was typed.
func (secretText) AfterApply(p *kong.Path) error {
	if p.Resolved {
		return nil
	}
	return fmt.Errorf("--%s: everybody sees what is typed here in the list of processes: want it in %s, or in a file: see --help",
		p.Flag.Name, p.Flag.Tag.Get(variableTag))
}

// secret returns the secret; the zero Secret if no flag names one, and not for an
// empty file. A file that was typed stands before the variable.
func (f tokenFlags) secret() (auth.Secret, error) {
	secret, err := readSecret(f.TokenSecretFile, f.TokenSecret)
	if err != nil {
		return secret, fmt.Errorf("--token-secret-file (SHOP_TOKEN_SECRET_FILE) or SHOP_TOKEN_SECRET: %w", err)
	}
	return secret, nil
}

func readSecret(file string, text secretText) (auth.Secret, error) {
	switch {
	case file != "" && text != "":
		return auth.Secret{}, errors.New("want one secret, not both")
	case file != "":
		return auth.ReadSecretFile(file)
	case text != "":
		return auth.NewSecret(string(text))
	}
	return auth.Secret{}, nil
}
