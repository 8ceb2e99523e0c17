package crowd

import (
	"math"
	"math/rand/v2"
	"slices"

	"example.com/shop/loadtest/shopclient"
)

// mix draws the orders of a race. The n-th order is the same in every race of the same
// Race, whoever sends it and whenever.
type mix struct {
	race    Race
	weights []float64
}

// wanted is what an order is to be and what its buyer does with it.
type wanted struct {
	lines          []shopclient.Line
	cancel, repeat bool // if it is placed
}

func newMix(r Race) mix { return mix{race: r, weights: zipf(len(r.SKUs), r.Skew)} }

func (m mix) order(number int64) wanted {
	random := rand.New(rand.NewPCG(uint64(number), 2))
	size := 1
	if m.race.Lines > 1 {
		size += random.IntN(m.race.Lines)
	}
	var w wanted
	for _, rank := range draw(random, m.weights, size) {
		w.lines = append(w.lines, shopclient.Line{SKU: m.race.SKUs[rank], Units: 1})
	}
	w.cancel = random.Float64() < m.race.Cancel
	w.repeat = random.Float64() < m.race.Repeat
	return w
}

// zipf returns the weights of n ranks, 0 the most wanted: rank k is drawn in proportion
// to 1/(k+1)^skew; 0 is even. With 100 SKUs and 1.1, the first one gets a quarter of all
// orders, the first ten two thirds.
func zipf(n int, skew float64) []float64 {
	weights := make([]float64, n)
	for k := range weights {
		weights[k] = math.Pow(float64(k+1), -skew)
	}
	return weights
}

// draw draws different ranks, in ascending order, n at most as many as there are.
func draw(r *rand.Rand, weights []float64, n int) []int {
	drawn := make([]int, 0, n)
	left := 0.0
	for _, weight := range weights {
		left += weight
	}
	for len(drawn) < n {
		at, rank := r.Float64()*left, -1
		for k, weight := range weights {
			if slices.Contains(drawn, k) {
				continue
			}
			rank = k // the last one, where rounding leaves a rest
			if at -= weight; at < 0 {
				break
			}
		}
		drawn = append(drawn, rank)
		left -= weights[rank]
	}
	slices.Sort(drawn)
	return drawn
}
