package web

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/stats"
)

// picture is a chart: curves in one pair of axes from zero, each with its name at its end.
type picture struct {
	Of           string // the strategy, if it is the picture of one
	Title, Lead  string
	Across, Down string // what the axes show
	Curves       []curve
	Supply       int64  // where a line stands for the units that were supplied; 0: nowhere
	Beyond       string // what is above that line
	Holds        bool   // each curve keeps its last value to the end of the axis
}

type curve struct {
	Name, Said string // Said: what came of it
	Wrong      bool
	Points     []point
}

type point struct{ X, Y float64 }

// Colours that can be seen on white and on black, and dashes for further curves. A Wrong curve is warm, any other cold.
var (
	colours = map[bool][]string{ //nolint:gochecknoglobals // a constant
		true:  {"#c9402a", "#c77a00", "#b0509f", "#a8683a"},
		false: {"#2f7fc4", "#1f8a70", "#6a6fd0", "#4b8f29"},
	}
	dashes = []string{"", "8 4", "2 3", "12 3 2 3", "5 5", "14 4", "3 6", "1 2"} //nolint:gochecknoglobals // a constant
)

// drawing is a picture in pixels, for the template chart.svg.
type drawing struct {
	picture
	Class                    string // wide, for a slide and a desk, or narrow, for a phone
	Width, Height            int
	Left, Top, Right, Bottom float64 // of the axes
	NamesX                   float64 // of the names of the curves, left of which are samples
	Crowded                  bool    // a name and what is said of it share a line
	Xs, Ys                   []tick
	SupplyY                  float64
	Lines                    []drawnCurve
}

type tick struct {
	At   float64
	Text string
}

type drawnCurve struct {
	curve
	Colour, Dash, Path string
	Y                  float64 // of its name
}

// draw draws the picture for a slide and a desk, and for a phone.
func (p picture) draw(language string) []drawing {
	wide := drawing{picture: p, Class: "wide", Width: 960, Height: 540, Left: 76, Top: 116, Right: 700, Bottom: 476}
	if wide.Crowded = len(p.Curves) > 9; wide.Crowded {
		wide.Right = 450
	}
	wide.NamesX = wide.Right + 46
	narrow := drawing{picture: p, Class: "narrow", Width: 360, Height: 350 + 38*len(p.Curves), Left: 50, Top: 76,
		Right: 346, Bottom: 280, NamesX: 44}
	wide.scale(language)
	wide.label()
	narrow.scale(language)
	for i := range narrow.Lines {
		narrow.Lines[i].Y = float64(348 + 38*i)
	}
	return []drawing{wide, narrow}
}

// end is where the axis across ends: with the last curve, but for a few that go on far beyond most others.
func (p picture) end() (end float64) {
	var ends []float64
	for _, c := range p.Curves {
		if len(c.Points) > 1 {
			ends = append(ends, c.Points[len(c.Points)-1].X)
		}
	}
	for _, at := range ends {
		if at <= 5*stats.Median(ends) {
			end = max(end, at)
		}
	}
	return end
}

// scale places the axes and the curves.
func (d *drawing) scale(language string) {
	end, most := max(d.end(), 1e-3), float64(d.Supply)*1.15
	for _, c := range d.Curves {
		for _, at := range c.Points {
			most = max(most, at.Y)
		}
	}
	xs, ys := ticks(end), ticks(most)
	x := func(v float64) float64 { return d.Left + v/end*(d.Right-d.Left) }
	y := func(v float64) float64 { return d.Bottom - v/ys[len(ys)-1]*(d.Bottom-d.Top) }
	name := func(v float64) string { return humanize.Commaf(math.Round(v*1e4) / 1e4) }
	for _, v := range xs {
		if v <= end {
			d.Xs = append(d.Xs, tick{x(v), name(v)})
		}
	}
	for _, v := range ys {
		d.Ys = append(d.Ys, tick{y(v), name(v)})
	}
	d.SupplyY = y(float64(d.Supply))
	used := map[bool]int{}
	for _, c := range d.Curves {
		n, of := used[c.Wrong], colours[c.Wrong]
		used[c.Wrong]++
		points, holds := c.Points, d.Holds
		if i := slices.IndexFunc(points, func(at point) bool { return at.X > end }); i >= 0 { // it goes on behind the axis
			c.Said += lang.Text(language, ", ends at %s", result.Milliseconds(1000*points[len(points)-1].X))
			points, holds = points[:i], true
		}
		line := drawnCurve{curve: c, Colour: of[n%len(of)], Dash: dashes[n/len(of)%len(dashes)]}
		var path strings.Builder
		for _, at := range points {
			line.Y = y(at.Y)
			fmt.Fprintf(&path, "%.1f,%.1f ", x(at.X), line.Y)
		}
		if holds && len(points) > 0 {
			fmt.Fprintf(&path, "%.1f,%.1f", d.Right, line.Y)
		}
		line.Path = path.String()
		d.Lines = append(d.Lines, line)
	}
}

// label writes the name of each curve beside its end, or as near as the other names leave room.
func (d *drawing) label() {
	const two = 44.0 // lines of text
	row := min(two, (d.Bottom-d.Top+40)/float64(max(1, len(d.Lines))))
	slices.SortStableFunc(d.Lines, func(a, b drawnCurve) int { return cmp.Compare(a.Y, b.Y) })
	free := d.Top - 30
	for i := range d.Lines {
		last := d.Bottom - 10 - row*float64(len(d.Lines)-1-i) // where there is room for the names below
		d.Lines[i].Y = min(max(d.Lines[i].Y, free), last)
		free = d.Lines[i].Y + row
	}
}

// ticks are round numbers from 0 to the first that is at least most: four to seven of them.
func ticks(most float64) (all []float64) {
	most = max(most, 1e-3)
	step := math.Pow10(int(math.Floor(math.Log10(most)))) / 5
	for _, times := range []float64{2.5, 2, 2} {
		if most > 6*step {
			step *= times
		}
	}
	for n := 0.0; ; n++ {
		if all = append(all, n*step); n*step >= most {
			return all
		}
	}
}

// soldOverTime is the picture for a slide: what each strategy sold, against the supply.
func soldOverTime(r result.Report, language string) picture {
	p := picture{
		Title: lang.Text(language, "Units sold over time"), Lead: r.Run.Lead(language), Holds: true,
		Across: lang.Text(language, "seconds since all buyers were released"), Down: lang.Text(language, "units in orders"),
		Beyond: lang.Text(language, "above the line: sold, but never supplied"),
	}
	var most int64
	for _, s := range r.Strategies {
		most = max(most, s.UnitsSold)
		said := lang.Text(language, "%s sold, %s", humanize.Comma(s.UnitsSold), wordOf(s, language).Text)
		c := curve{Name: s.Name, Said: said, Wrong: !s.Designed, Points: []point{{}}}
		for _, sale := range s.Sales {
			c.Points = append(c.Points, point{sale.MS / 1000, float64(sale.Orders)})
		}
		p.Curves = append(p.Curves, c)
		p.Supply = max(p.Supply, s.Supplied)
	}
	if r.Run.Seconds > 0 && p.Supply > 2*most { // the end of the supply is far away
		p.Supply, p.Beyond = 0, ""
	}
	return p
}

// compared are pictures with all strategies: how long their buyers waited, and how fast they answered over time. The
// waits over time come where buyers order again and again; else a wait is the time of its answer.
func compared(r result.Report, language string) (all [][]drawing) {
	since := lang.Text(language, "seconds since all buyers were released")
	waits := picture{
		Title: lang.Text(language, "How long the buyers waited"), Across: lang.Text(language, "percent of the orders"),
		Down: lang.Text(language, "seconds within which they were answered"),
	}
	answers := picture{Title: lang.Text(language, "Answers over time"), Across: since, Down: lang.Text(language, "answers per second")}
	grow := picture{Title: lang.Text(language, "Waits over time"), Across: since, Down: lang.Text(language, "milliseconds until the answer")}
	for _, s := range r.Strategies {
		wait := curve{Name: s.Name, Wrong: !s.Designed,
			Said: fmt.Sprintf("p50 %s, p95 %s", result.Milliseconds(s.LatencyMS.P50), result.Milliseconds(s.LatencyMS.P95))}
		for i, ms := range s.Waits {
			wait.Points = append(wait.Points, point{float64(5 * i), ms / 1000})
		}
		speed := curve{Name: s.Name, Wrong: !s.Designed, Said: lang.Text(language, "%s/s in all", result.Rounded(s.AnswersPerSecond))}
		half, most := curve{Name: s.Name + " p50", Wrong: !s.Designed}, curve{Name: s.Name + " p99", Wrong: !s.Designed}
		for _, part := range s.Parts {
			at := part.EndMS / 1000
			speed.Points = append(speed.Points, point{at, part.AnswersPerSecond})
			half.Points, most.Points = append(half.Points, point{at, part.Latency.P50}), append(most.Points, point{at, part.Latency.P99})
		}
		waits.Curves, answers.Curves, grow.Curves = append(waits.Curves, wait), append(answers.Curves, speed), append(grow.Curves, half, most)
	}
	all = [][]drawing{waits.draw(language), answers.draw(language)}
	if r.Run.Seconds > 0 {
		all = append(all, grow.draw(language))
	}
	return all
}

// stockBesideOrders shows whether the stock column follows the orders; nothing if the shop reports no
// steps, or if too few of the units were sold to be seen.
func stockBesideOrders(s result.Strategy, language string) []drawing {
	orders := curve{Name: lang.Text(language, "in orders"), Wrong: s.Oversold > 0, Points: []point{{}},
		Said: lang.Text(language, "%s units sold", humanize.Comma(s.UnitsSold))}
	column := curve{
		Name: lang.Text(language, "available"), Said: lang.Text(language, "%s left, says the stock column", humanize.Comma(s.StockLeft)),
		Points: []point{{0, float64(s.Supplied)}},
	}
	for _, sale := range s.Sales {
		orders.Points = append(orders.Points, point{sale.MS / 1000, float64(sale.Orders)})
		if sale.Available != nil {
			column.Points = append(column.Points, point{sale.MS / 1000, float64(*sale.Available)})
		}
	}
	if len(column.Points) == 1 || s.Supplied > 10*s.Orders {
		return nil
	}
	return picture{
		Of: s.Name, Title: lang.Text(language, "The stock column beside the orders"), Holds: true, Curves: []curve{orders, column},
		Across: lang.Text(language, "seconds since all buyers were released"), Down: lang.Text(language, "units"),
		Supply: s.Supplied,
	}.draw(language)
}
