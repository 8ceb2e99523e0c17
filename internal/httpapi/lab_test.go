package httpapi_test

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/lab"
	"example.com/shop/internal/stock"
)

// GET /v1/strategies lists what the service offers, and Shop-Strategy sells by each that is available.
func TestStrategies(t *testing.T) {
	t.Parallel()
	s := newShop(t, teach)
	type strategy struct {
		Name, Lock, Take string
		Designed         bool `json:"promises_correct"`
		Lesson           string
		Available        bool
		Missing          string `json:"reason"`
	}
	got := unmarshal[struct {
		Strategies      []strategy
		Database, Redis string
	}](t, s.call(t, "GET /v1/strategies", ""))
	if got.Database != "SQLite 3" || got.Redis != "none" || len(got.Strategies) != len(s.service.Offers) {
		t.Fatalf("got %+v, want all strategies and the servers of the Config", got)
	}
	s.supply(t, "mug", 50)
	sold := int64(0)
	for i, o := range s.service.Offers {
		want := strategy{o.Name, o.Lock, o.Take, o.Designed, o.Lesson, o.Missing == "", o.Missing}
		if got.Strategies[i] != want {
			t.Errorf("got %+v, want %+v", got.Strategies[i], want)
		}
		w := s.buy(t, "by-"+o.Name, goodOrder, "Shop-Strategy: "+o.Name, "Shop-Think: 1ms")
		if o.Missing == "" {
			wantStatus(t, w, http.StatusCreated)
			sold++
		} else if p := wantProblem(t, w, "400 missing-strategy"); !strings.Contains(p["detail"].(string), o.Missing) {
			t.Errorf("%s: got %v, want the reason %q in it", o.Name, p, o.Missing)
		}
	}
	if sold == 0 || sold == int64(len(s.service.Offers)) {
		t.Errorf("%d of %d are available, want some", sold, len(s.service.Offers))
	}
	s.wantLevel(t, "mug", stock.Level{Supplied: 50, Available: 50 - sold, Reserved: sold})
}

// What is the operator's is not on the buyers' listener of a shop that sells, not even as a method that it would take.
func TestLab_off(t *testing.T) {
	t.Parallel()
	for allow, change := range map[string]func(*httpapi.Config){"GET, HEAD": nil, "POST, GET, HEAD": teach} {
		w := newShop(t, change).call(t, "DELETE /v1/skus", "")
		wantProblem(t, w, "405 method-not-allowed")
		if got := w.Header().Get("Allow"); got != allow {
			t.Errorf("got Allow %q, want %q", got, allow)
		}
	}
}

// openapi.yaml: "In teaching mode alone: what placing this order, or finding the stock sold out, took. A replay has
// none."
func TestTrace(t *testing.T) {
	t.Parallel()
	s := newShop(t, teach)
	s.supply(t, "mug", 5)
	times := regexp.MustCompile(`at=\d{16}\b`)
	for _, c := range []struct {
		key, body string
		status    int
		want      string // with # for each time
	}{
		{"key-1", line("2"), 201, "begun;at=#, read;at=#;sku=mug;units=5, writing;at=#, written;at=#;sku=mug;units=3, committed;at=#"},
		{"key-1", line("2"), 201, ""}, // a replay
		{"key-2", line("4"), 409, "begun;at=#, read;at=#;sku=mug;units=3"},
		{"key-1", line("3"), 422, ""},
		{"key-3", strings.ReplaceAll(line("1"), "mug", "cup"), 422, ""},
	} {
		w := s.buy(t, c.key, c.body, "Shop-Strategy: none")
		wantStatus(t, w, c.status)
		if got := times.ReplaceAllString(w.Header().Get("Shop-Trace"), "at=#"); got != c.want {
			t.Errorf("%s %s: Shop-Trace: got  %s\nwant %s", c.key, c.body, got, c.want)
		}
	}
	plain := newShop(t, nil)
	plain.supply(t, "mug", 5)
	if got := plain.buy(t, "key-1", line("2")).Header().Values("Shop-Trace"); got != nil {
		t.Errorf("outside of teaching mode: got %q, want none", got)
	}
}

// openapi.yaml: "before each step that another request can notice", "Let the request take the step".
func TestRecording(t *testing.T) {
	t.Parallel()
	s := newShop(t, teach)
	s.supply(t, "mug", 5)
	status := make(chan int, 1)
	go func() {
		status <- s.buy(t, "key-1", goodOrder, "Shop-Strategy: redis", "Shop-Tape: a", "Shop-Stop: each").Code
	}()
	type recording struct {
		State   string
		Next    string
		Version int
		Events  []struct{ Kind, Text, Answer string }
	}
	var got recording
	var stops []string
	for len(stops) < 2 { // this shop's recorder observes its locks alone
		if got.State == "stopped" {
			stops = append(stops, got.Next)
			move := []string{"step", "resume"}[len(stops)-1]
			is := unmarshal[lab.LockState](t, s.call(t, "GET /v1/tapes/a/lock", ""))
			if holds := len(stops) == 2; (is.Owner != "") != holds || (is.TTL > 0) != holds {
				t.Errorf("before %s: got lock %+v", got.Next, is)
			}
			got = unmarshal[recording](t, s.call(t, "POST /v1/tapes/a/"+move, ""))
		} else if w := s.call(t, "GET /v1/tapes/a?seen="+strconv.Itoa(got.Version), ""); w.Code == http.StatusOK {
			got = unmarshal[recording](t, w) // the first looks may come before the order
		}
	}
	if want := []string{"lock sku:mug", "release sku:mug"}; !slices.Equal(stops, want) {
		t.Errorf("got stops %q, want %q", stops, want)
	}
	if got := <-status; got != http.StatusCreated {
		t.Errorf("got status %d, want 201", got)
	}
	got = unmarshal[recording](t, s.call(t, "GET /v1/tapes/a", ""))
	var steps []string
	for _, e := range got.Events {
		if e.Kind == "step" {
			steps = append(steps, e.Text+" "+e.Answer)
		}
	}
	want := []string{"begun ", "lock-asked ", "lock-held ", "read 5 units", "writing ", "written ", "committed ", "released "}
	if got.State != "ended" || !slices.Equal(steps, want) {
		t.Errorf("got %s, steps %q, want ended, %q", got.State, steps, want)
	}
	wantProblem(t, s.buy(t, "key-2", goodOrder, "Shop-Tape: a"), "400 malformed") // a name is used once
	wantProblem(t, s.call(t, "GET /v1/tapes/unknown", ""), "404 not-found")
	wantProblem(t, s.call(t, "GET /v1/tapes/unknown/lock", ""), "404 not-found")
	wantProblem(t, s.call(t, "GET /v1/tapes/a?seen=-1", ""), "400 malformed")
	wantProblem(t, s.call(t, "POST /v1/tapes/unknown/resume", ""), "404 not-found")
	wantProblem(t, s.call(t, "POST /v1/tapes/a/leap", ""), "400 malformed")
	wantProblem(t, s.call(t, "POST /v1/tapes/a/resume", `{"a":1}`, asJSON), "400 malformed")
}
