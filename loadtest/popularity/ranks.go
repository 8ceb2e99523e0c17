package popularity

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// Ranks draws ranks, 0 the most wanted. It may be used by many goroutines at once,
// each with random numbers of its own.
type Ranks struct {
	weights, upTo []float64 // of each rank, and of it and all before it
}

// Zipf has rank k drawn in proportion to 1/(k+1)^skew, of n ranks, n at least 1.
func Zipf(n int, skew float64) Ranks {
	z := Ranks{weights: make([]float64, n), upTo: make([]float64, n)}
	sum := 0.0
	for k := range n {
		z.weights[k] = math.Pow(float64(k+1), -skew)
		sum += z.weights[k]
		z.upTo[k] = sum
	}
	return z
}

// One draws a rank.
func (z Ranks) One(r *rand.Rand) int {
	last := len(z.upTo) - 1
	return min(last, sort.SearchFloat64s(z.upTo, r.Float64()*z.upTo[last]))
}

// Some draws different ranks, in ascending order, n at most as many as there are.
func (z Ranks) Some(r *rand.Rand, n int) []int {
	drawn := make([]int, 0, n)
	left := z.upTo[len(z.upTo)-1]
	for len(drawn) < n {
		at, rank := r.Float64()*left, -1
		for k, weight := range z.weights {
			if slices.Contains(drawn, k) {
				continue
			}
			rank = k // the last one, where rounding leaves a rest
			if at -= weight; at < 0 {
				break
			}
		}
		drawn = append(drawn, rank)
		left -= z.weights[rank]
	}
	slices.Sort(drawn)
	return drawn
}
