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
)

// picture is a chart: curves in one pair of axes from zero, each with its name at its end.
type picture struct {
	language     string
	Title, Lead  string
	Across, Down string // what the axes show
	Curves       []curve
	Supply       float64 // where a line stands for the units that were supplied, with its name; 0: nowhere
	Supplied     string
	Beyond       string // what is above that line
	Holds        bool   // each curve keeps its last value to the end of the axis
}

type curve struct {
	Name, Said string // Said: what came of it
	Wrong      bool   // a warm colour, else a cold one
	Points     []point
}

type point struct{ X, Y float64 }

// Colours that tell on white and on black, and lines for when the colours are used up.
var (
	warm   = []string{"#c9402a", "#c77a00", "#b0509f", "#a8683a"}                //nolint:gochecknoglobals // a constant
	cold   = []string{"#2f7fc4", "#1f8a70", "#6a6fd0", "#4b8f29"}                //nolint:gochecknoglobals // a constant
	dashes = []string{"", "8 4", "2 3", "12 3 2 3", "5 5", "14 4", "3 6", "1 2"} //nolint:gochecknoglobals // a constant
)

// drawing is a picture in pixels, for the template chart.svg.
type drawing struct {
	picture
	Label                    string // all that its curves say
	Class                    string // wide, for a slide and a desk, or narrow, for a phone
	Width, Height            int
	Left, Top, Right, Bottom float64 // of the axes
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
	Label              string
	X, Y, SaidX, SaidY float64 // of its name, left of which is a sample, and of what is said
}

// draw draws the picture for a slide and a desk, and for a phone.
func (p picture) draw() []drawing {
	wide := drawing{picture: p, Class: "wide", Width: 960, Height: 540, Left: 76, Top: 116, Right: 700, Bottom: 476}
	if len(p.Curves) > 9 { // a name and what is said of it share a line
		wide.Right = 500
	}
	narrow := drawing{picture: p, Class: "narrow", Width: 360, Height: 350 + 22*len(p.Curves), Left: 50, Top: 76, Right: 346, Bottom: 280}
	wide.scale()
	wide.label()
	narrow.scale()
	for i := range narrow.Lines {
		line := &narrow.Lines[i]
		line.X, line.Y = 44, float64(348+22*i)
		line.SaidX, line.SaidY = line.X+8.5*float64(len(line.Name))+8, line.Y
	}
	return []drawing{wide, narrow}
}

// scale places the axes and the curves.
func (d *drawing) scale() {
	var most point
	for _, c := range d.Curves {
		for _, at := range c.Points {
			most = point{max(most.X, at.X), max(most.Y, at.Y)}
		}
	}
	xs, ys := ticks(most.X), ticks(max(most.Y, d.Supply*1.15))
	x := func(v float64) float64 { return d.Left + v/max(most.X, 1e-3)*(d.Right-d.Left) }
	y := func(v float64) float64 { return d.Bottom - v/ys[len(ys)-1]*(d.Bottom-d.Top) }
	name := func(v float64) string { return humanize.Commaf(math.Round(v*1e4) / 1e4) }
	for _, v := range xs {
		if v <= most.X {
			d.Xs = append(d.Xs, tick{x(v), name(v)})
		}
	}
	for _, v := range ys {
		d.Ys = append(d.Ys, tick{y(v), name(v)})
	}
	d.SupplyY = y(d.Supply)
	d.Label = d.Title
	used := map[bool]int{}
	for _, c := range d.Curves {
		colours := cold
		if c.Wrong {
			colours = warm
		}
		n := used[c.Wrong]
		used[c.Wrong]++
		label := lang.Text(d.language, "%s: %s", c.Name, c.Said)
		d.Label += lang.Text(d.language, "; ") + label
		line := drawnCurve{curve: c, Label: label, Colour: colours[n%len(colours)], Dash: dashes[n/len(colours)%len(dashes)]}
		var path strings.Builder
		for _, at := range c.Points {
			line.Y = y(at.Y)
			fmt.Fprintf(&path, "%.1f,%.1f ", x(at.X), line.Y)
		}
		if d.Holds && len(c.Points) > 0 {
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
		d.Lines[i].Y = max(d.Lines[i].Y, free)
		free = d.Lines[i].Y + row
	}
	last := d.Bottom - 10
	for i := range slices.Backward(d.Lines) {
		line := &d.Lines[i]
		line.Y = min(line.Y, last)
		last = line.Y - row
		line.X, line.SaidX, line.SaidY = d.Right+46, d.Right+46, line.Y+19
		if row < two {
			line.SaidX, line.SaidY = d.Right+46+205, line.Y
		}
	}
}

// ticks are round numbers from 0 to the first that is at least most: four to seven of them.
func ticks(most float64) (all []float64) {
	most = max(most, 1e-3)
	unit := math.Pow10(int(math.Floor(math.Log10(most))))
	step := 2 * unit
	for _, smaller := range []float64{1, 0.5, 0.2} {
		if most <= 6*smaller*unit {
			step = smaller * unit
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
		language: language, Title: lang.Text(language, "Units sold over time"), Lead: r.Run.Lead(language), Holds: true,
		Across: lang.Text(language, "seconds since all buyers were released"), Down: lang.Text(language, "units in orders"),
		Beyond: lang.Text(language, "above the line: sold, but never there"),
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
		if float64(s.Supplied) > p.Supply {
			p.Supply, p.Supplied = float64(s.Supplied), lang.Text(language, "%s supplied", humanize.Comma(s.Supplied))
		}
	}
	if r.Run.Seconds > 0 && p.Supply > float64(2*most) { // the end of the supply is far away
		p.Supply, p.Beyond = 0, ""
	}
	return p
}

// compared are pictures with all strategies: how long their buyers waited, and how fast they answered over time. The waits
// over time come where buyers order again and again; else a wait is the time of its answer.
func compared(r result.Report, language string) (all [][]drawing) {
	since := lang.Text(language, "seconds since all buyers were released")
	waits := picture{
		language: language, Title: lang.Text(language, "How long the buyers waited"), Across: lang.Text(language, "percent of the orders"),
		Down: lang.Text(language, "seconds within which they were answered"),
	}
	answers := picture{language: language, Title: lang.Text(language, "Answers over time"), Across: since, Down: lang.Text(language, "answers per second")}
	grow := picture{language: language, Title: lang.Text(language, "Waits over time"), Across: since, Down: lang.Text(language, "milliseconds until the answer")}
	for _, s := range r.Strategies {
		wait := curve{Name: s.Name, Wrong: !s.Designed, Said: fmt.Sprintf("p50 %s, p95 %s", result.Milliseconds(s.LatencyMS.P50), result.Milliseconds(s.LatencyMS.P95))}
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
	all = [][]drawing{waits.draw(), answers.draw()}
	if r.Run.Seconds > 0 {
		all = append(all, grow.draw())
	}
	return all
}

// stockBesideOrders shows whether the stock column follows the orders; nothing if the shop reports no steps, or if too few of
// the units were sold to be seen.
func stockBesideOrders(s result.Strategy, language string) []drawing {
	orders := curve{Name: lang.Text(language, "in orders"), Said: lang.Text(language, "%s units sold", humanize.Comma(s.UnitsSold)), Wrong: s.Oversold > 0, Points: []point{{}}}
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
		language: language, Title: lang.Text(language, "%s: the stock column beside the orders", s.Name), Holds: true, Curves: []curve{orders, column},
		Across: lang.Text(language, "seconds since all buyers were released"), Down: lang.Text(language, "units"),
		Supply: float64(s.Supplied), Supplied: lang.Text(language, "%s supplied", humanize.Comma(s.Supplied)),
	}.draw()
}
