package orderhttp

import (
	"net/http"
	"testing"
	"time"
)

// "Every 429 and 503 carries Retry-After": each row of the table, and asking again
// is safe there.
func TestErrorTable_retryAfter(t *testing.T) {
	t.Parallel()
	for _, r := range errorTable() {
		busy := r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable
		if busy && (r.retryAfter < 1 || !r.retrySafe) {
			t.Errorf("%v: got Retry-After %d, retry_safe %v, want 1 at least, and safe", r.err, r.retryAfter, r.retrySafe)
		}
	}
}

// "In seconds", rounded up: who waits for so long is let through.
func TestSeconds(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]int{
		1: 1, 50 * time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, 90 * time.Second: 90,
	} {
		if got := seconds(wait); got != want {
			t.Errorf("%v: got %d, want %d", wait, got, want)
		}
	}
}
