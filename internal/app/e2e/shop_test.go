package e2e_test

import (
	"context"
	"net/http"
	"testing"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
	"example.com/shop/internal/httpapi/contract"
)

const (
	tokenSecret   = "AwoRGB8mLTQ7QklQV15lbHN6gYiPlp2kq7K5wMfO1dw="
	operatorToken = "BRAbJjE8R1JdaHN+iZSfqrXAy9bh7PcCDRgjLjlET1o="

	instances = 3
)

// shop is one shop in three instances, and what was heard from it.
type shop struct {
	t         *testing.T
	instances []*app.Shop
	tokens    *auth.Tokens
	front     *http.Client // to the buyers' listeners
	back      *http.Client // to the operator's
	book      *book
}

// open starts the instances. change may adapt the settings of instance i; nil leaves all as they are. They are shut
// down when the test ends.
func (k kind) open(t *testing.T, change func(i int, s *app.Settings)) *shop {
	t.Helper()
	common := k.settings(t)
	common.Listen, common.OperatorListen = "127.0.0.1:0", "127.0.0.1:0"
	common.TokenSecret, common.OperatorToken = secret(t, tokenSecret), secret(t, operatorToken)
	common.LockWait = patience
	common.RateLimit, common.MaxOpenOrders = new(0), new(0)
	tokens := auth.New(common.TokenSecret)
	connections := &http.Transport{MaxIdleConnsPerHost: 128}
	client := func(l contract.Listener) *http.Client {
		return &http.Client{Transport: contract.Transport(t, l, connections), Timeout: 3 * patience}
	}
	s := &shop{t: t, tokens: tokens, book: newBook(t), front: client(contract.Buyers), back: client(contract.Operator)}
	for i := range instances {
		settings := common
		if change != nil {
			change(i, &settings)
		}
		instance, err := app.Start(t.Context(), settings)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			connections.CloseIdleConnections()
			_ = instance.Shutdown(context.Background())
		})
		s.instances = append(s.instances, instance)
	}
	return s
}

func secret(t *testing.T, text string) auth.Secret {
	t.Helper()
	secret, err := auth.NewSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}
