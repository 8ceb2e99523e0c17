package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const pending = "pending"

// book is what buyers and operator were told. It may be used by many goroutines.
type book struct {
	t        *testing.T
	mu       sync.Mutex
	orders   map[string]order // by id, each with the last status that was told
	supplied map[string]int64 // units of each SKU
	buyers   map[string]bool  // all who asked for something
}

func newBook(t *testing.T) *book {
	return &book{t: t, orders: map[string]order{}, supplied: map[string]int64{}, buyers: map[string]bool{}}
}

// note writes down what an answer acknowledges. Two answers that contradict each other fail the test.
func (b *book) note(r request, a answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.buyer == "" {
		b.noteSupply(r, a)
		return
	}
	b.buyers[r.buyer] = true
	switch {
	case r.method == http.MethodGet:
	case a.status == http.StatusCreated || a.status == http.StatusOK:
		var told order
		if err := json.Unmarshal([]byte(a.body), &told); err != nil {
			b.t.Errorf("%s: %v", a.body, err)
			return
		}
		b.noteOrder(told)
	case a.orderStatus() != "":
		b.noteEnd(strings.Split(r.path, "/")[3], a.orderStatus())
	}
}

func (b *book) noteSupply(r request, a answer) {
	if r.method != http.MethodPost || a.status != http.StatusCreated || a.header.Get("Idempotent-Replayed") != "" {
		return
	}
	var sent struct {
		SKU   string
		Units int64
	}
	if err := json.Unmarshal([]byte(r.body), &sent); err != nil {
		b.t.Errorf("%s: %v", r.body, err)
	}
	if sent.SKU == "" {
		sent.SKU = strings.Split(r.path, "/")[3]
	}
	b.supplied[sent.SKU] += sent.Units
}

// noteOrder takes an order, or the end of one, that was acknowledged.
func (b *book) noteOrder(told order) {
	known, again := b.orders[told.ID]
	if !again {
		b.orders[told.ID] = told
		return
	}
	if different := diff(known, told); different != "" {
		b.t.Errorf("order %s was acknowledged twice (-first +second):\n%s", told.ID, different)
	}
	if told.Status != pending { // which it is in a replay of the order
		b.noteEnd(told.ID, told.Status)
	}
}

// noteEnd takes how an order ended: only once.
func (b *book) noteEnd(id, state string) {
	known := b.orders[id]
	if known.Status != pending && known.Status != state {
		b.t.Errorf("order %s: buyers were told %s and %s", id, known.Status, state)
	}
	known.Status = state
	b.orders[id] = known
}

// diff compares all but the status.
func diff(a, b order) string {
	a.Status, b.Status = "", ""
	return cmp.Diff(a, b)
}
