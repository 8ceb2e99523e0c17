package main

import (
	"fmt"

	"example.com/shop/internal/auth"
)

// operatorFlags say where the operator's API is and who may use it.
type operatorFlags struct {
	OperatorListen    string     `placeholder:"ADDR" help:"Address of the operator's API, metrics and profiles, host:port. Without servers and --lab it is at 127.0.0.1 and the port after --listen's anyhow; else only if asked for." variable:"SHOP_OPERATOR_LISTEN"`
	OperatorTokenFile string     `placeholder:"FILE" help:"The operator's token, in a file of mode 0600 or 0640; or the token itself in $$SHOP_OPERATOR_TOKEN." variable:"SHOP_OPERATOR_TOKEN_FILE" rival:"operator-token"`
	OperatorToken     secretText `hidden:"" variable:"SHOP_OPERATOR_TOKEN" rival:"operator-token-file"`
}

// token returns the operator's token; the zero Secret if no flag names one.
func (f operatorFlags) token() (auth.Secret, error) {
	token, err := readSecret(f.OperatorTokenFile, f.OperatorToken)
	if err != nil {
		return token, fmt.Errorf("--operator-token-file (SHOP_OPERATOR_TOKEN_FILE) or SHOP_OPERATOR_TOKEN: %w", err)
	}
	return token, nil
}
