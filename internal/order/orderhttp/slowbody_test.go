package orderhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// stops is a body of which half arrives.
type stops struct{ err error }

func (s stops) Read([]byte) (int, error) { return 0, s.err }
func (stops) Close() error               { return nil }

func TestPlaceOrder_brokenBody(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 1)
	for _, c := range []struct {
		err    error
		status int
		slug   string
	}{
		{fmt.Errorf("read tcp: %w", os.ErrDeadlineExceeded), http.StatusRequestTimeout, "slow-body"},
		{io.ErrUnexpectedEOF, http.StatusBadRequest, "malformed"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/orders", stops{c.err})
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "key-1")
		wantProblem(t, b.serve(t, b.handler, r), c.status, c.slug)
	}
	b.wantUntouched(t, "mug", 1)
}
