package page

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/report"
)

// answers shows orders and refusals over time, each with a scale of its own.
type answers struct {
	Series []series
	End    string // of the time axis
}

type series struct {
	Class, Name string
	Rate        string // over the whole race
	Peak        string // of a slice
	Label       string
	Bars        []column
}

type column struct {
	X, Y, Width, Height percent
}

func newAnswers(s report.Strategy) answers {
	a := s.Answers
	slices := max(len(a.Orders), len(a.Refusals))
	return answers{
		End: milliseconds(a.SliceMS * float64(slices)),
		Series: []series{
			newSeries("orders", s.Acknowledged, s.OrdersPerSecond, a.Orders, a.SliceMS),
			newSeries("refusals", s.Refused, s.RefusalsPerSecond, a.Refusals, a.SliceMS),
		},
	}
}

func newSeries(name string, all int64, perSecond float64, counts []int64, sliceMS float64) series {
	var peak int64
	for _, n := range counts {
		peak = max(peak, n)
	}
	out := series{
		Class: name,
		Name:  humanize.Comma(all) + " " + name,
		Rate:  rate(perSecond) + " per second",
		Label: fmt.Sprintf("%s over time: %s, at most %s in %s", name, humanize.Comma(all), humanize.Comma(peak), milliseconds(sliceMS)),
	}
	if peak > 0 {
		out.Peak = fmt.Sprintf("at most %s in %s", humanize.Comma(peak), milliseconds(sliceMS))
	}
	for i, n := range counts {
		if n == 0 {
			continue
		}
		width := 100 / percent(len(counts))
		height := max(2, share(n, peak)) // one of many is seen, too
		out.Bars = append(out.Bars, column{X: percent(i) * width, Y: 100 - height, Width: width * 0.86, Height: height})
	}
	return out
}

// curve shows how long which share of the buyers waited. The places of its line
// are out of 100, those of its ticks in percent.
type curve struct {
	Points string
	Ticks  []tick
	Top    string // of the axis of waits
	Label  string
}

type tick struct {
	X      percent
	Text   string
	Anchor string // of the text
}

// newCurve stretches the axis of percentiles towards its end: each nine more is
// as wide as the one before.
func newCurve(s report.Strategy) curve {
	last := 1.0
	for _, w := range s.Waits {
		if w.Percentile < 100 {
			last = max(last, nines(w.Percentile)+0.3)
		}
	}
	place := func(percentile float64) float64 {
		if percentile >= 100 {
			return 100
		}
		return 100 * nines(percentile) / last
	}
	top := max(s.LatencyMS.Max, 0.001)
	var points []string
	for _, w := range s.Waits {
		points = append(points, fmt.Sprintf("%.2f,%.2f", place(w.Percentile), 100-100*min(1, w.MS/top)))
	}
	c := curve{
		Points: strings.Join(points, " "),
		Top:    milliseconds(s.LatencyMS.Max),
		Label: fmt.Sprintf("%s: half of the buyers waited at most %s, 99 of 100 at most %s, the last %s", s.Name,
			milliseconds(s.LatencyMS.P50), milliseconds(s.LatencyMS.P99), milliseconds(s.LatencyMS.Max)),
	}
	for _, p := range []float64{50, 90, 99, 99.9, 99.99, 100} {
		x := place(p)
		if p < 100 && x > 88 {
			continue // would meet the text of the last
		}
		t := tick{X: percent(x), Text: fmt.Sprintf("%g %%", p), Anchor: "middle"}
		if p == 100 {
			t.Anchor = "end"
		}
		c.Ticks = append(c.Ticks, t)
	}
	return c
}

// nines is 1 for 90 percent, 2 for 99.
func nines(percentile float64) float64 { return -math.Log10(1 - percentile/100) }
