package crowd

import (
	"slices"
	"time"
)

// Series has the points of charts: a race over time. Times are in milliseconds from the common start.
type Series struct {
	Sales []Sale    `json:"sales,omitempty"`    // acknowledged orders over time, some 60 of them
	Waits []float64 `json:"waits_ms,omitempty"` // the waits that 0, 5, 10 and so on to 100 percent of the orders do not exceed
	Parts []Part    `json:"parts,omitempty"`    // the race, cut into 30 parts of equal length
}

// Sale is the moment at which an order was acknowledged.
type Sale struct {
	MS        float64 `json:"ms"`
	Orders    int64   `json:"orders"`              // acknowledged until then
	Available *int64  `json:"available,omitempty"` // the stock column after this order, if the shop reports its steps
}

// Part is one of the equal parts of a race.
type Part struct {
	EndMS            float64 `json:"end_ms"`
	AnswersPerSecond float64 `json:"answers_per_second"`
	Latency          Latency `json:"latency_ms"` // of the orders that were answered in this part
}

// Series returns the points of charts.
func (l Log) Series() Series {
	const sales, parts = 60, 30
	var c Series
	var sold []Record
	for _, r := range l.Records {
		if r.Outcome == Ordered {
			sold = append(sold, r)
		}
	}
	for i, r := range sold {
		if n := i + 1; i == 0 || n*sales/len(sold) > i*sales/len(sold) {
			c.Sales = append(c.Sales, Sale{MS: Milliseconds(r.Ended), Orders: int64(n), Available: r.left()})
		}
	}
	waits := l.waits()
	for p := 0; p <= 100 && len(waits) > 0; p += 5 {
		c.Waits = append(c.Waits, percentile(waits, float64(p)))
	}
	var within [parts][]time.Duration
	var answers [parts]int64
	for _, r := range l.Records {
		i := min(int(r.Ended*parts/max(1, l.Took)), parts-1)
		within[i] = append(within[i], r.Latency)
		if r.Outcome == Ordered || r.Outcome == Refused {
			answers[i]++
		}
	}
	for i := range within {
		slices.Sort(within[i])
		end := l.Took * time.Duration(i+1) / parts
		c.Parts = append(c.Parts, Part{Milliseconds(end), rate(answers[i], l.Took/parts), newLatency(within[i])})
	}
	return c
}

// left returns the units in the stock column after an order, as the shop reports them: the units that it wrote or,
// where the database subtracts, one less than the units that it read.
func (r Record) left() *int64 {
	if r.Trace == nil {
		return nil
	}
	if r.Trace.Wrote != nil {
		return r.Trace.Wrote
	}
	return new(r.Trace.Seen - 1)
}
