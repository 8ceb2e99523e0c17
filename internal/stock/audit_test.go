package stock_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/stock"
)

// "Check compares the three sources and returns what differs."
func TestAccount_Check(t *testing.T) {
	t.Parallel()
	sound := stock.Level{Supplied: 10, Available: 7, Reserved: 2, Sold: 1}
	for name, c := range map[string]struct {
		account stock.Account
		want    []stock.Difference
	}{
		"nothing": {},
		"sound":   {account: stock.Account{SKU: "mug", Level: sound, Ledger: sound, OrderedUnits: 3, OpenUnits: 2, PaidUnits: 1, Orders: 2}},
		"unbalanced": {
			account: stock.Account{SKU: "mug", Level: stock.Level{Supplied: 1}, Ledger: stock.Level{Supplied: 1}},
			want:    []stock.Difference{{Invariant: "I1", SKU: "mug", Detail: "supplied 1 is not available 0 + reserved 0 + sold 0, none negative"}},
		},
		// A lost update: 12 units in orders, and the row knows of 10.
		"oversold": {
			account: stock.Account{
				SKU: "mug", Orders: 12, OrderedUnits: 12, OpenUnits: 12,
				Level:  stock.Level{Supplied: 10, Reserved: 10},
				Ledger: stock.Level{Supplied: 10, Available: -2, Reserved: 12},
			},
			want: []stock.Difference{
				{Invariant: "I1", SKU: "mug", Detail: "oversold by 2: orders hold 12 units of 10 supplied"},
				{Invariant: "I1", SKU: "mug", Detail: "reserved 10, but open orders hold 12 units"},
				{Invariant: "I5", SKU: "mug", Detail: "level says supplied 10, available 0, reserved 10, sold 0; the ledger adds up to supplied 10, available -2, reserved 12, sold 0"},
			},
		},
		"fence differs": {
			account: stock.Account{SKU: "mug", Fence: 6, LedgerFence: 7},
			want:    []stock.Difference{{Invariant: "I4", SKU: "mug", Detail: "level was written under fence 6; the highest of its movements is 7"}},
		},
		"ledger differs": {
			account: stock.Account{SKU: "mug", Level: stock.Level{Supplied: 1, Available: 1}},
			want:    []stock.Difference{{Invariant: "I5", SKU: "mug", Detail: "level says supplied 1, available 1, reserved 0, sold 0; the ledger adds up to supplied 0, available 0, reserved 0, sold 0"}},
		},
	} {
		if diff := cmp.Diff(c.want, c.account.Check()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// "Oversold is the number of units in orders beyond what was ever supplied."
func TestAccount_Oversold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ supplied, ordered, want int64 }{{10, 0, 0}, {10, 10, 0}, {10, 11, 1}, {0, 431, 431}} {
		got := stock.Account{Level: stock.Level{Supplied: c.supplied}, OrderedUnits: c.ordered}.Oversold()
		if got != c.want {
			t.Errorf("%d of %d: got %d, want %d", c.ordered, c.supplied, got, c.want)
		}
	}
}
