package orderhttp_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// doc.go: "In teaching mode the answer to POST /v1/orders that places an order, or
// says that it is sold out, has a Shop-Trace". No other has one.
func TestPlaceOrder_trace(t *testing.T) {
	b := setup(t, lab)
	b.supply(t, "mug", 5)
	none := "Shop-Strategy: none"
	for _, c := range []struct {
		name, key, body string
		status          int
		want            string // with # for each time
	}{
		{"placed", "key-1", line("2"), http.StatusCreated, "begun;at=#, read;at=#;sku=mug;units=5, writing;at=#, written;at=#;sku=mug;units=3, committed;at=#"},
		{"a replay", "key-1", line("2"), http.StatusCreated, ""},
		{"sold out", "key-2", line("4"), http.StatusConflict, "begun;at=#, read;at=#;sku=mug;units=3"},
		{"the key of another", "key-1", line("3"), http.StatusUnprocessableEntity, ""},
		{"not for sale", "key-3", strings.ReplaceAll(line("1"), "mug", "cup"), http.StatusUnprocessableEntity, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := b.buy(t, c.key, c.body, none)
			wantStatus(t, w, c.status)
			if got := regexp.MustCompile(`at=\d{16}\b`).ReplaceAllString(w.Header().Get("Shop-Trace"), "at=#"); got != c.want {
				t.Errorf("Shop-Trace: got  %s\nwant %s", got, c.want)
			}
		})
	}
	shop := setup(t, nil)
	shop.supply(t, "mug", 5)
	if got := shop.buy(t, "key-1", line("2")).Header().Values("Shop-Trace"); got != nil {
		t.Errorf("outside of teaching mode: got %q, want none", got)
	}
}
