package orderhttp_test

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
)

type tapeShown struct {
	State   string
	Version int
	Events  []struct{ Kind, Text, Answer string }
}

// openapi.yaml: "stop the request once, after a step of Shop-Trace", "It goes on when
// it is resumed".
func TestTape(t *testing.T) {
	t.Parallel()
	b := setup(t, lab)
	b.supply(t, "mug", 5)
	status := make(chan int, 1)
	look := func(path string) (got tapeShown) {
		t.Helper()
		w := b.call(t, http.MethodGet, path, "")
		wantStatus(t, w, http.StatusOK)
		unmarshal(t, w, &got)
		return got
	}
	go func() {
		status <- b.buy(t, "key-1", goodOrder, "Shop-Strategy: redis", "Shop-Tape: a", "Shop-Stop: step:read").Code
	}()
	var got tapeShown
	for got.State != "stopped" { // the first looks may come before the order
		w := b.call(t, http.MethodGet, "/v1/tapes/a?seen="+strconv.Itoa(got.Version), "")
		if w.Code == http.StatusOK {
			unmarshal(t, w, &got)
		}
	}
	wantStatus(t, b.call(t, http.MethodPost, "/v1/tapes/a/resume", "", asJSON), http.StatusOK)
	if got := <-status; got != http.StatusCreated {
		t.Errorf("got status %d, want 201", got)
	}
	got = look("/v1/tapes/a")
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
	b.wantClean(t)
}

func TestTape_refused(t *testing.T) {
	t.Parallel()
	b := setup(t, lab)
	b.supply(t, "mug", 5)
	for name, headers := range map[string][]string{
		"bad name":          {"Shop-Tape: A b"},
		"empty name":        {"Shop-Tape: "},
		"bad stop":          {"Shop-Tape: a", "Shop-Stop: commit"},
		"stop without tape": {"Shop-Stop: sql:COMMIT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantProblem(t, b.buy(t, "key-1", goodOrder, headers...), http.StatusBadRequest, "malformed")
		})
	}
	wantStatus(t, b.buy(t, "key-1", goodOrder, "Shop-Tape: twice"), http.StatusCreated)
	wantProblem(t, b.buy(t, "key-2", goodOrder, "Shop-Tape: twice"), http.StatusBadRequest, "malformed")
	wantProblem(t, b.call(t, http.MethodGet, "/v1/tapes/unknown", ""), http.StatusNotFound, "not-found")
	wantProblem(t, b.call(t, http.MethodGet, "/v1/tapes/twice?seen=-1", ""), http.StatusBadRequest, "malformed")
	wantProblem(t, b.call(t, http.MethodPost, "/v1/tapes/unknown/resume", ""), http.StatusNotFound, "not-found")
	wantProblem(t, b.call(t, http.MethodPost, "/v1/tapes/twice/resume", `{"a":1}`, asJSON), http.StatusBadRequest, "malformed")

	shop := setup(t, nil)
	wantProblem(t, shop.buy(t, "key-1", goodOrder, "Shop-Tape: a"), http.StatusBadRequest, "lab-off")
	wantProblem(t, shop.buy(t, "key-1", goodOrder, "Shop-Stop: step:read"), http.StatusBadRequest, "lab-off")
	wantProblem(t, shop.call(t, http.MethodGet, "/v1/tapes/a", ""), http.StatusNotFound, "not-found")
}
