package popularity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func hundred() []string {
	skus := make([]string, 100)
	for i := range skus {
		skus[i] = fmt.Sprint(i)
	}
	return skus
}

// shares returns which part of 100 buyers' orders each SKU got.
func shares(pick Pick, skus []string) []float64 {
	const each = 1000
	times := map[string]int{}
	for buyer := range uint64(100) {
		next := pick(buyer)
		for range each {
			times[next()]++
		}
	}
	got := make([]float64, len(skus))
	for i, sku := range skus {
		got[i] = float64(times[sku]) / (100 * each)
	}
	return got
}

// "0 is even."
func TestSkewed_even(t *testing.T) {
	t.Parallel()
	skus := hundred()
	for i, share := range shares(Skewed(skus, 0), skus) {
		if share < 0.008 || share > 0.012 {
			t.Errorf("SKU %d: got %.4f of the orders, want about 0.01", i, share)
		}
	}
}

// "With 100 SKUs and 1.1, the first one gets a quarter of all orders, the first
// ten two thirds."
func TestSkewed(t *testing.T) {
	t.Parallel()
	skus := hundred()
	got := shares(Skewed(skus, 1.1), skus)
	var ten, all float64
	for i, share := range got {
		if i < 10 {
			ten += share
		}
		all += share
		if share == 0 {
			t.Errorf("SKU %d was never bought", i)
		}
	}
	if got[0] < 0.22 || got[0] > 0.28 || ten < 0.62 || ten > 0.70 || all < 0.999 {
		t.Errorf("got %.3f for the first, %.3f for ten, %.3f for all; want 0.25, 0.66, 1", got[0], ten, all)
	}
}

func TestPick_sameBuyerBuysTheSame(t *testing.T) {
	t.Parallel()
	skus := hundred()
	for name, pick := range map[string]Pick{"only": Only("mug"), "even": Skewed(skus, 0), "skewed": Skewed(skus, 1.1)} {
		a, b := pick(7), pick(7)
		for range 100 {
			if x, y := a(), b(); x != y {
				t.Fatalf("%s: got %s and %s", name, x, y)
			}
		}
	}
}

// "Some draws different ranks, in ascending order."
func TestRanks_Some(t *testing.T) {
	t.Parallel()
	const ranks = 7
	r := rand.New(rand.NewPCG(1, 1))
	for _, skew := range []float64{0, 1.1, 5} {
		z := Zipf(ranks, skew)
		first := 0
		for range 1000 {
			for n := range ranks + 1 {
				got := z.Some(r, n)
				if len(got) != n || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != n {
					t.Fatalf("skew %v: got %v, want %d different ones", skew, got, n)
				}
				if n == 1 && got[0] == 0 {
					first++
				}
			}
		}
		if share := float64(first) / 1000; skew > 0 && share < 0.3 {
			t.Errorf("skew %v: the first was drawn by %.2f of the carts of one, want it to be wanted most", skew, share)
		}
	}
}
