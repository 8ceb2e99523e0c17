package buyers

import (
	"math/rand/v2"

	"example.com/shop/loadtest/popularity"
	"example.com/shop/loadtest/shopclient"
)

// wish is what an order is to be and what its buyer does with it.
type wish struct {
	lines         []shopclient.Line
	cancel, again bool // if it is placed
}

// wishes makes them. The n-th order of a race wants the same in every race of the
// same Race, whoever sends it and whenever.
type wishes struct {
	race  *Race
	ranks popularity.Ranks
}

func (w wishes) of(number int64) wish {
	random := rand.New(rand.NewPCG(uint64(number), 2))
	return wish{
		lines:  w.lines(random),
		cancel: random.Float64() < w.race.Cancel,
		again:  random.Float64() < w.race.Again,
	}
}

func (w wishes) lines(random *rand.Rand) []shopclient.Line {
	size := 1
	if w.race.Lines > 1 {
		size += random.IntN(w.race.Lines)
	}
	lines := make([]shopclient.Line, 0, size)
	for _, rank := range w.ranks.Some(random, size) {
		lines = append(lines, shopclient.Line{SKU: w.race.SKUs[rank], Units: 1})
	}
	return lines
}
