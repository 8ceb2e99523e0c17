package app

import (
	"errors"
	"fmt"

	"example.com/shop/internal/store"
)

// labPassword is the one that docker-compose.yml gives its servers. It is
// published, so it must protect nothing.
const labPassword = "lab-only"

// validMode keeps teaching mode and production apart, both ways.
func (s Settings) validMode() error {
	var mysqlTLS, mysqlLab, redisTLS, redisLab bool
	if dsn, err := store.ReadDSN(s.MySQL); err == nil {
		mysqlTLS, mysqlLab = dsn.TLS(), dsn.HasPassword(labPassword)
	}
	if o, err := redisOptions(s.Redis); err == nil {
		redisTLS = o.TLSConfig != nil
		redisLab = o.Password == labPassword
	}
	mysqlTLS = mysqlTLS || !s.MySQLTLS.IsZero()
	redisTLS = redisTLS || !s.RedisTLS.IsZero()
	if s.Lab {
		return errors.Join(looksLikeProduction("mysql", mysqlTLS), looksLikeProduction("redis", redisTLS), s.labToken())
	}
	return errors.Join(knownPassword("mysql", mysqlLab), knownPassword("redis", redisLab), s.needsToken())
}

// looksLikeProduction refuses TLS in teaching mode: the lab's servers have none,
// production's do, and there a buyer must not choose to oversell.
func looksLikeProduction(name string, tls bool) error {
	if !tls {
		return nil
	}
	return fmt.Errorf("%s: has TLS, as production's servers do; teaching mode sells too much on purpose: leave out --lab, or use the lab's own servers", name)
}

// labToken refuses a secret that would protect nothing: in teaching mode buyers
// name themselves.
func (s Settings) labToken() error {
	if s.TokenSecret.IsZero() {
		return nil
	}
	return errors.New("token-secret: is not for teaching mode, which believes buyers: leave out --lab, or --token-secret-file and SHOP_TOKEN_SECRET")
}

// needsToken refuses a shop that would believe buyers.
func (s Settings) needsToken() error {
	if !s.TokenSecret.IsZero() {
		return nil
	}
	return errors.New("token-secret: is missing, and buyers are known by what it signs; make one with: (umask 077; openssl rand -base64 32 > token.secret), then add --token-secret-file token.secret, or put it into SHOP_TOKEN_SECRET; the same for all instances")
}

// validOperator refuses an operator's API that is open to everybody, or to
// whoever mints buyers' tokens; and a token that opens nothing.
func (s Settings) validOperator() error {
	switch {
	case s.OperatorListen == "" && s.OperatorToken.IsZero():
		return nil
	case s.OperatorListen == "":
		return errors.New("operator-token: opens nothing without the operator's API: add --operator-listen 127.0.0.1:8081, or leave out --operator-token-file and SHOP_OPERATOR_TOKEN")
	case s.OperatorToken.IsZero():
		return errors.New("operator-token: is missing, and the operator's API is open to who shows it; make one with: (umask 077; openssl rand -base64 32 > operator.token), then add --operator-token-file operator.token, or put it into SHOP_OPERATOR_TOKEN")
	case s.OperatorToken == s.TokenSecret:
		return errors.New("operator-token: is the secret of buyers' tokens, which is not for operators: want another one")
	}
	return validListen("operator-listen", s.OperatorListen)
}

func knownPassword(name string, known bool) error {
	if !known {
		return nil
	}
	return fmt.Errorf("%s: its password is %q, which docker-compose.yml publishes; set another, or add --lab", name, labPassword)
}
