package contract

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// Transport sends requests by next to a listener and fails the test on each answer
// that is off the contract. It may be used by many goroutines at once, until the
// test ends.
func Transport(t testing.TB, to Listener, next http.RoundTripper) http.RoundTripper {
	t.Helper()
	c, err := to()
	if err != nil {
		t.Fatal(err)
	}
	return &transport{t: t, contract: c, next: next}
}

type transport struct {
	t        testing.TB
	contract *Contract
	next     http.RoundTripper
}

// RoundTrip returns the answer with its body read.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if err := t.contract.Check(r, answer.StatusCode, answer.Header, body); err != nil {
		t.t.Errorf("off the contract: %v", err)
	}
	return answer, nil
}
