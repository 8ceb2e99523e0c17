package orderstore_test

import "example.com/shop/internal/stock"

// fenceTamperings is damage to fences. The first is none: one transaction may
// sell to many orders under one fence.
func fenceTamperings() []tampering {
	return []tampering{
		{
			name: "two orders of one transaction",
			damage: []string{
				"UPDATE movements SET fence = 7 WHERE sku = 'mug' AND kind = 'reserve'",
				"UPDATE skus SET fence = 7 WHERE name = 'mug'",
			},
		},
		{
			name: "two transactions under one fence",
			damage: []string{
				"UPDATE movements SET fence = 7 WHERE sku = 'mug' AND kind = 'reserve'",
				"UPDATE movements SET created_at = '2026-03-04 05:06:07.123457' WHERE id = '{move}'",
				"UPDATE skus SET fence = 7 WHERE name = 'mug'",
			},
			want: []stock.Difference{
				{Invariant: "I4", SKU: "mug", Detail: "fence 7 was accepted more than once: its reservations are from 2026-03-04 05:06:07.123456 to 2026-03-04 05:06:07.123457"},
			},
		},
		{
			name:   "level under a fence that no movement has",
			damage: []string{"UPDATE skus SET fence = 7 WHERE name = 'mug'"},
			want: []stock.Difference{
				{Invariant: "I4", SKU: "mug", Detail: "level was written under fence 7; the highest of its movements is 0"},
			},
		},
		{
			name: "fence fell back",
			damage: []string{
				"UPDATE movements SET fence = 8 WHERE id = '{move}'",
				"UPDATE skus SET fence = 7 WHERE name = 'mug'",
			},
			want: []stock.Difference{
				{Invariant: "I4", SKU: "mug", Detail: "level was written under fence 7; the highest of its movements is 8"},
			},
		},
	}
}
