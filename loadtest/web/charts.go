package web

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
)

// percent is a length or a place on the page.
type percent float64

func (p percent) String() string { return fmt.Sprintf("%.2f%%", float64(p)) }

func share(part, whole int64) percent {
	return percent(100 * float64(part) / float64(max(1, whole)))
}

// bar shows units sold against units supplied. All bars have one scale, which leaves room at the right for the line of
// the supply.
type bar struct {
	Label  string
	Supply percent // where the line of the supply is
	Sold   percent // of what was in stock
	Over   percent // of what was not
	Text   string
}

func newBar(s result.Strategy, most int64, language string) bar {
	const room = 0.99
	sold, supplied := humanize.Comma(s.UnitsSold), humanize.Comma(s.Supplied)
	return bar{
		Label:  lang.Text(language, "%s: units %s sold of %s, %s", s.Name, sold, supplied, wordOf(s, language).Text),
		Supply: room * share(s.Supplied, most),
		Sold:   room * share(max(0, s.UnitsSold-s.Oversold), most),
		Over:   room * share(s.Oversold, most),
		Text:   lang.Text(language, "%s sold of %s", sold, supplied),
	}
}

// series shows orders or refusals over time, each with a scale of its own.
type series struct {
	Class, Name string
	Rate        string // over the whole race
	Peak        string // of a slice
	Label       string
	End         string // of the time axis
	Bars        []column
}

type column struct{ X, Y, Width, Height percent }

func newSeries(s result.Strategy, language string) []series {
	a := s.Answers
	one := func(name string, all int64, perSecond float64, counts []int64) series {
		peak := slices.Max(append(counts, 0))
		length := result.Milliseconds(a.SliceMS)
		out := series{
			Class: name,
			Name:  humanize.Comma(all) + " " + lang.Text(language, name),
			Rate:  lang.Text(language, "%s per second", result.Rounded(perSecond)),
			Label: lang.Text(language, "%s over time: %s, at most %s in %s", lang.Text(language, name), humanize.Comma(all), humanize.Comma(peak), length),
			End:   result.Milliseconds(a.SliceMS * float64(len(counts))),
		}
		if peak > 0 {
			out.Peak = lang.Text(language, "at most %s in %s", humanize.Comma(peak), length)
		}
		width := 100 / percent(max(1, len(counts)))
		for i, n := range counts {
			if n > 0 {
				height := max(2, share(n, peak)) // one of many is also seen
				out.Bars = append(out.Bars, column{X: percent(i) * width, Y: 100 - height, Width: width * 0.86, Height: height})
			}
		}
		return out
	}
	return []series{
		one("orders", s.Acknowledged, s.OrdersPerSecond, a.Orders),
		one("refusals", s.Refused, s.RefusalsPerSecond, a.Refusals),
	}
}

// curve shows how long which share of the buyers waited. The points of its line are out of 100, those of its ticks in
// percent.
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

// newCurve stretches the axis of percentiles towards its end: each nine more is as wide as the one before.
func newCurve(s result.Strategy, language string) curve {
	nines := func(percentile float64) float64 { return -math.Log10(1 - percentile/100) } // 1 for 90 percent, 2 for 99
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
		Top:    result.Milliseconds(s.LatencyMS.Max),
		Label: lang.Text(language, "%s: half of the buyers waited at most %s, 99 of 100 at most %s, the last %s", s.Name,
			result.Milliseconds(s.LatencyMS.P50), result.Milliseconds(s.LatencyMS.P99), result.Milliseconds(s.LatencyMS.Max)),
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
