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
	if s.Lab {
		return errors.Join(looksLikeProduction("mysql", mysqlTLS), looksLikeProduction("redis", redisTLS))
	}
	return errors.Join(knownPassword("mysql", mysqlLab), knownPassword("redis", redisLab))
}

// looksLikeProduction refuses TLS in teaching mode: the lab's servers have none,
// production's do, and there a buyer must not choose to oversell.
func looksLikeProduction(name string, tls bool) error {
	if !tls {
		return nil
	}
	return fmt.Errorf("%s: has TLS, as production's servers do; teaching mode sells too much on purpose: leave out --lab, or use the lab's own servers", name)
}

func knownPassword(name string, known bool) error {
	if !known {
		return nil
	}
	return fmt.Errorf("%s: its password is %q, which docker-compose.yml publishes; set another, or add --lab", name, labPassword)
}
