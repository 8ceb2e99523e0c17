package verdict_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/verdict"
)

// "Added up, never one against the other, and the verdict is the worst."
func TestTogether(t *testing.T) {
	t.Parallel()
	type (
		judgement = verdict.Judgement
		sku       = verdict.SKU
	)
	fine := sku{"cup", judgement{Verdict: verdict.Correct}}
	over := sku{"mug", judgement{Verdict: verdict.Oversold, Oversold: 3, Findings: []string{"I1"}}}
	under := sku{"pen", judgement{Verdict: verdict.Undersold, Undersold: 5}}
	odd := sku{"cap", judgement{Verdict: verdict.Inconsistent, Findings: []string{"a", "b", "c"}, Notes: []string{"n"}}}
	for name, c := range map[string]struct {
		skus []sku
		want judgement
	}{
		"one":            {[]sku{over}, over.Judgement},
		"all is well":    {[]sku{fine, fine}, judgement{Verdict: verdict.Correct}},
		"never netted":   {[]sku{fine, over, under, over}, judgement{Verdict: verdict.Oversold, Oversold: 6, Undersold: 5, Findings: []string{"mug: I1", "mug: I1"}}},
		"one undersold":  {[]sku{fine, under}, judgement{Verdict: verdict.Undersold, Undersold: 5}},
		"few are told":   {[]sku{odd, over, fine}, judgement{Verdict: verdict.Oversold, Oversold: 3, Findings: []string{"cap: a", "cap: b", "cap: c", "1 more"}, Notes: []string{"cap: n"}}},
		"worse than few": {[]sku{under, odd}, judgement{Verdict: verdict.Inconsistent, Undersold: 5, Findings: []string{"cap: a", "cap: b", "cap: c"}, Notes: []string{"cap: n"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, verdict.Together(c.skus)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
