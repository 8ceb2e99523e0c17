package main

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"strconv"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
)

// Names of the files in which a shop without servers keeps the secrets that it
// made, in its data folder.
const (
	tokenSecretFile   = "token.secret"
	operatorTokenFile = "operator.token"
)

// protect adds the flags' secrets to the settings, and makes those that a shop
// without servers lacks. What other shops lack is found by Settings.Validate.
func (s *serveCommand) protect(at *place, settings *app.Settings) (err error) {
	settings.OperatorListen = s.OperatorListen
	if settings.TokenSecret, err = s.secret(); err != nil {
		return usage("serve", err)
	}
	if settings.OperatorToken, err = s.token(); err != nil {
		return usage("serve", err)
	}
	if !at.alone() {
		return nil
	}
	if !s.Lab {
		settings.OperatorListen = cmp.Or(settings.OperatorListen, besides(s.Listen))
		at.madeSecret = settings.TokenSecret.IsZero()
	}
	at.madeToken = settings.OperatorListen != "" && settings.OperatorToken.IsZero()
	if at.madeSecret {
		if settings.TokenSecret, err = auth.KeptSecret(filepath.Join(at.dir, tokenSecretFile)); err != nil {
			return fmt.Errorf("secret of buyers' tokens: %w", err)
		}
	}
	if at.madeToken {
		if settings.OperatorToken, err = auth.KeptSecret(filepath.Join(at.dir, operatorTokenFile)); err != nil {
			return fmt.Errorf("operator's token: %w", err)
		}
	}
	return nil
}

// besides returns where the operator's API is if nobody says: on this machine
// alone, at the port after the shop's, or at a free one if the shop is at one.
func besides(listen string) string {
	_, text, _ := net.SplitHostPort(listen)
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || port == math.MaxUint16 {
		return "127.0.0.1:0" // what is no address is refused with the other settings
	}
	return fmt.Sprintf("127.0.0.1:%d", port+1)
}
