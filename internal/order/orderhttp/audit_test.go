package orderhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order/orderhttp"
	"example.com/shop/internal/stock"
)

type auditAnswer struct {
	OK   bool `json:"ok"`
	SKUs []struct {
		SKU          string `json:"sku"`
		Supplied     int64  `json:"supplied"`
		Available    int64  `json:"available"`
		Reserved     int64  `json:"reserved"`
		Sold         int64  `json:"sold"`
		Orders       int64  `json:"orders"`
		OrderedUnits int64  `json:"ordered_units"`
		Oversold     int64  `json:"oversold"`
	} `json:"skus"`
	Differences []struct {
		Invariant string `json:"invariant"`
		SKU       string `json:"sku"`
		OrderID   string `json:"order_id"`
		Detail    string `json:"detail"`
	} `json:"differences"`
	Truncated bool `json:"truncated"`
}

func TestAudit_clean(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.supply(t, "cup", 7)
	b.supply(t, "mug", 5)
	wantStatus(t, b.buy(t, "key-1", line("2")), http.StatusCreated)
	w := b.operate(t, http.MethodGet, "/v1/audit?sku=mug", "")
	wantStatus(t, w, http.StatusOK)
	want := `{"ok":true,"skus":[{"sku":"mug","supplied":5,"available":3,"reserved":2,"sold":0,"orders":1,"ordered_units":2,"oversold":0}],"differences":[],"truncated":false}` + "\n"
	if diff := cmp.Diff(want, w.Body.String()); diff != "" {
		t.Errorf("want, got:\n%s", diff)
	}
	var all auditAnswer
	unmarshal(t, b.operate(t, http.MethodGet, "/v1/audit", ""), &all)
	if !all.OK || len(all.SKUs) != 2 {
		t.Errorf("got %+v, want two SKUs without a difference", all)
	}
}

// badBooks is an auditor with more to tell than one answer lists.
type badBooks struct{ skus, differences int }

func (a badBooks) Audit(_ context.Context, _ string, account func(stock.Account) error, difference func(stock.Difference) error) error {
	for i := range a.skus {
		if err := account(stock.Account{SKU: fmt.Sprint(i), OrderedUnits: 3, Level: stock.Level{Supplied: 1}}); err != nil {
			return err
		}
	}
	for range a.differences {
		if err := difference(stock.Difference{Invariant: "I5", OrderID: "1", Detail: "no movement"}); err != nil {
			return err
		}
	}
	return nil
}

// Differences are the audit's result, not its failure.
func TestAudit_differences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		books       badBooks
		skus, found int
		truncated   bool
	}{
		{badBooks{1, 1}, 1, 1, false},
		{badBooks{1_000, 1_000}, 1_000, 1_000, false},
		{badBooks{1_001, 1}, 1_000, 1, true},
		{badBooks{0, 1_001}, 0, 1_000, true},
	} {
		t.Run(fmt.Sprint(c.books), func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(config *orderhttp.Config) { config.Auditor = c.books })
			w := b.operate(t, http.MethodGet, "/v1/audit", "")
			wantStatus(t, w, http.StatusOK)
			var got auditAnswer
			unmarshal(t, w, &got)
			if got.OK || len(got.SKUs) != c.skus || len(got.Differences) != c.found || got.Truncated != c.truncated {
				t.Errorf("got ok %v, %d SKUs, %d differences, truncated %v; want %+v",
					got.OK, len(got.SKUs), len(got.Differences), got.Truncated, c)
			}
			if len(got.SKUs) > 0 && got.SKUs[0].Oversold != 2 {
				t.Errorf("got %+v, want 2 oversold", got.SKUs[0])
			}
		})
	}
}
