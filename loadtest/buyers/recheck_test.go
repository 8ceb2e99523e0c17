package buyers

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/shopclient"
)

func TestRace_Recheck(t *testing.T) {
	t.Parallel()
	const crowd = 50
	tests := []struct {
		name   string
		change func(*fakeShop)
		want   []string // ids
	}{
		{"all are there", func(*fakeShop) {}, nil},
		{"one is lost", func(s *fakeShop) { s.forget("order-7") }, []string{"order-7"}},
		{
			"one is another buyer's",
			func(s *fakeShop) { s.owners["order-7"] = "somebody" },
			[]string{"order-7"},
		},
		{
			"one shows more units than were bought",
			func(s *fakeShop) {
				for key, o := range s.orders {
					if o.ID == "order-7" {
						o.Lines = []shopclient.Line{{SKU: "thing", Units: 2}}
						s.orders[key] = o
					}
				}
			},
			[]string{"order-7"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			shop := newFakeShop(t, crowd-10)
			race := raceIn(crowd, shop)
			log, err := race.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tt.change(shop)
			lost, err := race.Recheck(t.Context(), log)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, l := range lost {
				ids = append(ids, l.OrderID)
			}
			if diff := cmp.Diff(tt.want, ids); diff != "" {
				t.Errorf("lost orders (-want +got):\n%s", diff)
			}
		})
	}
}

// An order that has expired holds no units any more, which the books cannot tell
// from units that were never sold.
func TestRace_Recheck_expired(t *testing.T) {
	t.Parallel()
	shop := newFakeShop(t, 2)
	race := raceIn(2, shop)
	log, err := race.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for key, o := range shop.orders {
		if o.ID == "order-2" {
			o.Status = shopclient.Expired
			shop.orders[key] = o
		}
	}
	lost, err := race.Recheck(t.Context(), log)
	if !errors.Is(err, ErrExpired) || !strings.Contains(err.Error(), "order-2") {
		t.Errorf("got %v, %v, want the refusal to judge, for order-2", lost, err)
	}
}

func TestRace_Recheck_shop_gone(t *testing.T) {
	t.Parallel()
	shop := newFakeShop(t, 1)
	race := raceIn(1, shop)
	log, err := race.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shop.Close()
	if _, err := race.Recheck(t.Context(), log); err == nil {
		t.Error("error: got nil, want that the shop cannot be asked: not knowing is not losing")
	}
}
