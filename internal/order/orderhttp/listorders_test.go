package orderhttp_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

type orderPage struct {
	Orders     []placed `json:"orders"`
	NextCursor string   `json:"next_cursor"`
}

// orders reads a page of the list.
func (b *bundle) ordersPage(t *testing.T, query string, headers ...string) orderPage {
	t.Helper()
	w := b.call(t, http.MethodGet, "/v1/orders?"+query, "", headers...)
	wantStatus(t, w, http.StatusOK)
	var page orderPage
	unmarshal(t, w, &page)
	return page
}

// buyAs places an order and returns its id.
func (b *bundle) buyAs(t *testing.T, buyer, key string) string {
	t.Helper()
	w := b.buy(t, key, goodOrder, "Shop-Buyer: "+buyer)
	wantStatus(t, w, http.StatusCreated)
	return strings.TrimPrefix(w.Header().Get("Location"), "/v1/orders/")
}

// The buyer's own orders, the latest first, none left out and none twice,
// wherever the pages end.
func TestListOrders_pages(t *testing.T) {
	b := setup(t, nil)
	b.supply(t, "mug", 1000)
	var want []string
	for i := range 53 {
		want = append(want, b.buyAs(t, "ann", fmt.Sprint("key-", i)))
		b.buyAs(t, "bob", fmt.Sprint("key-", i))
	}
	slices.Reverse(want)
	for _, limit := range []string{"", "1", "7", "52", "53", "54", "100"} {
		t.Run("limit "+limit, func(t *testing.T) {
			var got []string
			cursor := ""
			for range len(want) + 1 {
				page := b.ordersPage(t, "limit="+limit+"&cursor="+cursor, "Shop-Buyer: ann")
				for _, o := range page.Orders {
					if o.Buyer != "ann" || len(o.Lines) != 1 {
						t.Errorf("got %+v, want an order of ann's with its line", o)
					}
					got = append(got, o.ID)
				}
				if cursor = page.NextCursor; cursor == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// Who has no order gets an empty list, also with another buyer's cursor.
func TestListOrders_foreign(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 5)
	for i := range 3 {
		b.buyAs(t, "ann", fmt.Sprint("key-", i))
	}
	cursor := b.ordersPage(t, "limit=1", "Shop-Buyer: ann").NextCursor
	for _, query := range []string{"", "cursor=" + cursor} {
		w := b.call(t, http.MethodGet, "/v1/orders?"+query, "", "Shop-Buyer: bob")
		wantStatus(t, w, http.StatusOK)
		if got, want := w.Body.String(), "{\"orders\":[]}\n"; got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
	wantStatus(t, b.call(t, http.MethodHead, "/v1/orders", "", "Shop-Buyer: ann"), http.StatusOK)
	for _, nobody := range []string{"", "a b", "\xff", "' OR 1=1 --"} {
		w := b.call(t, http.MethodGet, "/v1/orders", "", "Shop-Buyer: "+nobody)
		wantProblem(t, w, http.StatusUnprocessableEntity, "invalid-order")
	}
}

// What is placed between two pages moves neither; a state is the one of the day.
func TestListOrders_placedBetweenPages(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "mug", 9)
	var ids []string
	for i := range 4 {
		ids = append(ids, b.buyAs(t, "guest", fmt.Sprint("key-", i)))
	}
	first := b.ordersPage(t, "limit=2")
	later := b.buyAs(t, "guest", "key-later")
	wantLife(t, b.end(t, "/v1/orders/"+ids[1], "pay"), "paid")
	second := b.ordersPage(t, "limit=2&cursor="+first.NextCursor)
	var got []string
	for _, o := range append(first.Orders, second.Orders...) {
		got = append(got, o.ID+" "+o.Status)
	}
	want := []string{ids[3] + " pending", ids[2] + " pending", ids[1] + " paid", ids[0] + " pending"}
	if !slices.Equal(got, want) || second.NextCursor != "" {
		t.Errorf("got %v, then cursor %q, want %v and the end", got, second.NextCursor, want)
	}
	if again := b.ordersPage(t, "limit=1"); again.Orders[0].ID != later {
		t.Errorf("got %+v, want the latest, %s", again.Orders, later)
	}
}

// "A cursor of one list is refused by every other", and so is one of another format.
func TestCursor_kinds(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for i := range 2 {
		b.supply(t, fmt.Sprint("mug-", i), 1)
		wantStatus(t, b.buy(t, fmt.Sprint("key-", i), strings.ReplaceAll(goodOrder, "mug", fmt.Sprint("mug-", i))), http.StatusCreated)
	}
	var skus skuPage
	unmarshal(t, b.call(t, http.MethodGet, "/v1/skus?limit=1", ""), &skus)
	of := map[string]string{"/v1/skus": skus.NextCursor, "/v1/orders": b.ordersPage(t, "limit=1").NextCursor}
	for list := range of {
		for other, cursor := range of {
			w := b.call(t, http.MethodGet, list+"?cursor="+cursor, "")
			if list == other {
				wantStatus(t, w, http.StatusOK)
			} else {
				wantProblem(t, w, http.StatusBadRequest, "malformed")
			}
		}
	}
}
