package buyers

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/popularity"
)

func wishesOf(race *Race) wishes {
	return wishes{race: race, ranks: popularity.Zipf(len(race.SKUs), race.Skew)}
}

// "An order is of 1 to so many SKUs, one unit each", different ones.
func Test_wishes_of_carts(t *testing.T) {
	t.Parallel()
	race := Race{Lines: 3, Skew: 1, Cancel: 0.25, Again: 0.5}
	for i := range 5 {
		race.SKUs = append(race.SKUs, fmt.Sprint("sku-", i))
	}
	const orders = 4000
	w, sizes, first := wishesOf(&race), map[int]int{}, map[string]int{}
	cancelled, again := 0, 0
	for n := range int64(orders) {
		wish := w.of(n)
		sizes[len(wish.lines)]++
		first[wish.lines[0].SKU]++
		seen := map[string]bool{}
		for _, line := range wish.lines {
			if line.Units != 1 || seen[line.SKU] {
				t.Fatalf("order %d: got %+v, want one unit of different SKUs", n, wish.lines)
			}
			seen[line.SKU] = true
		}
		cancelled += map[bool]int{true: 1}[wish.cancel]
		again += map[bool]int{true: 1}[wish.again]
	}
	for _, size := range []int{1, 2, 3} {
		if share := float64(sizes[size]) / orders; share < 0.28 || share > 0.38 {
			t.Errorf("carts of %d: got %.2f of all, want a third", size, share)
		}
	}
	if len(sizes) != 3 || first["sku-0"] <= first["sku-1"] {
		t.Errorf("got carts of %v, first lines %v; want up to 3, the first SKU wanted most", sizes, first)
	}
	if c, a := float64(cancelled)/orders, float64(again)/orders; c < 0.22 || c > 0.28 || a < 0.47 || a > 0.53 {
		t.Errorf("got %.2f cancelled and %.2f sent again, want 0.25 and 0.5", c, a)
	}
}

// "The n-th order of a race wants the same in every race of the same Race."
func Test_wishes_of_again(t *testing.T) {
	t.Parallel()
	race := Race{SKUs: []string{"a", "b", "c"}, Lines: 2, Cancel: 0.5, Again: 0.5}
	for n := range int64(50) {
		if diff := cmp.Diff(wishesOf(&race).of(n), wishesOf(&race).of(n), cmp.AllowUnexported(wish{})); diff != "" {
			t.Fatalf("order %d: %s", n, diff)
		}
	}
}
