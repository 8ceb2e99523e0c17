package app_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// Shutdown aborts an order that takes too long, and returns an error. The accounts still agree.
func TestShutdown_aborts(t *testing.T) {
	t.Parallel()
	s := embedded(t, 5)
	s.Drain, s.LeaseWait = 50*time.Millisecond, 10*time.Second
	shop := start(t, s)
	lease, waited := takeLease(t, s, "sku:mug")
	order := make(chan answer, 1)
	go func() { order <- buy(t, shop, "in-flight") }()
	waited()

	err := shop.Shutdown(t.Context())
	if err == nil {
		t.Error("got nil, want an error about the aborted order")
	}
	if again := shop.Shutdown(t.Context()); fmt.Sprint(again) != fmt.Sprint(err) {
		t.Errorf("got %v from a second Shutdown, want %v", again, err)
	}
	if w := <-order; w.Status != 0 {
		t.Errorf("got %d %s for the order, want no answer", w.Status, w.Body)
	}
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	second := start(t, s)
	wantAudit(t, second, 0)
	buy(t, second, "in-flight").Want(t, http.StatusCreated)
}
