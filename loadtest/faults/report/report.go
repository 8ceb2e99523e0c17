// Package report shows what came of histories: as a table, as JSON, and as timelines in one HTML file.
package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"example.com/shop/loadtest/faults/checks"
	"example.com/shop/loadtest/faults/history"
	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/stats"
)

// Report is what came of a run.
type Report struct {
	Version   int                `json:"version"` // of this format
	StartedAt time.Time          `json:"started_at"`
	Histories []*history.History `json:"histories"`
}

// Broken reports whether a promise was broken.
func (r Report) Broken() bool {
	return slices.ContainsFunc(r.Histories, func(h *history.History) bool { return len(h.Violations) > 0 })
}

// WriteTable writes a line for each fault and what was broken.
func (r Report) WriteTable(out io.Writer) error {
	var rows []table.Row
	kills, commits, undecided := 0, 0, 0
	var names []string // in the sequence of the first histories
	byFault := map[string][]*history.History{}
	for _, h := range r.Histories {
		if byFault[h.Fault] == nil {
			names = append(names, h.Fault)
		}
		byFault[h.Fault] = append(byFault[h.Fault], h)
	}
	for _, name := range names {
		all := byFault[name]
		var recovery, gap []time.Duration
		violations, orders := 0, 0
		for _, h := range all {
			recovery, gap = append(recovery, h.Recovery), append(gap, h.Gap)
			violations, orders = violations+len(h.Violations), orders+h.Sold
			kills, commits = kills+h.Kills, commits+h.Commits
			if h.Undecided {
				undecided++
			}
		}
		rows = append(rows, table.Row{name, all[0].Servers, len(all), orders, violations,
			short(stats.Median(recovery)), short(slices.Max(recovery)), short(stats.Median(gap)), short(slices.Max(gap))})
	}
	_, err := fmt.Fprintf(out, "%s\n%d histories, %d kills, %d COMMITs without an answer, %d undecided by Porcupine\n",
		stats.Table(table.Row{"fault", "servers", "histories", "orders", "violations", "recovery", "longest", "no sale for", "longest"}, rows, 3, 9),
		len(r.Histories), kills, commits, undecided)
	for _, h := range r.Histories {
		for _, v := range h.Violations {
			if err == nil {
				_, err = fmt.Fprintf(out, "%s, seed %d: %s: %s\n", h.Fault, h.Seed, v.Check, v.Detail)
			}
		}
	}
	return err
}

func short(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

// WriteJSON writes all.
func (r Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

//go:embed timelines.html
var timelines string

// WriteHTML writes the timelines of the histories that have operations, in one file that needs nothing else.
func (r Report) WriteHTML(w io.Writer) error {
	t, err := template.New("").Funcs(template.FuncMap{"short": short, "checks": checks.All, "draw": draw}).Parse(timelines)
	if err != nil {
		return err
	}
	return t.Execute(w, r)
}

// Drawing is a history as lines from left to right, a row for each shop.
type Drawing struct {
	Width, Height, BrokenX, BrokenWidth float64
	Lines                               []Line
	Sales                               []Line // per slice of time
	Seconds                             []float64
}

// Line is a request, or the sales of a slice of time, in pixels.
type Line struct {
	X, Y, Width, Height float64
	Class, Title        string
}

const (
	pixels    = 1000.0 // in all
	rows      = 24     // of requests at once, for each shop
	rowSize   = 3.0
	shopSize  = rows*rowSize + 8
	salesSize = 60.0
	slice     = 50 * time.Millisecond
)

// draw draws a history that has its operations.
func draw(h *history.History) Drawing {
	length := time.Duration(1)
	for _, o := range h.Operations {
		length = max(length, o.Last().Answered)
	}
	x := func(d time.Duration) float64 { return pixels * float64(d) / float64(length) }
	d := Drawing{Width: pixels, Height: salesSize + system.Instances*shopSize, BrokenX: x(h.Broken), BrokenWidth: max(1, x(h.Healed-h.Broken))}
	for second := time.Duration(0); second < length; second += time.Second {
		d.Seconds = append(d.Seconds, x(second))
	}
	sold := make([]float64, length/slice+1)
	free := map[int][]time.Duration{} // by shop: when each row is free
	for _, o := range h.Operations {
		if o.Outcome == history.Placed && !o.Replay {
			sold[o.Last().Answered/slice]++
		}
		for i, request := range o.Requests {
			class := "again"
			if i == len(o.Requests)-1 {
				class = string(o.Outcome)
			}
			row := slices.IndexFunc(free[request.Shop], func(until time.Duration) bool { return until <= request.Sent })
			if row < 0 {
				row = len(free[request.Shop])
				free[request.Shop] = append(free[request.Shop], 0)
			}
			free[request.Shop][row] = request.Answered
			d.Lines = append(d.Lines, Line{
				X: x(request.Sent), Width: max(1.5, x(request.Answered-request.Sent)), Height: rowSize - 1,
				Y:     salesSize + float64(request.Shop)*shopSize + float64(row%rows)*rowSize,
				Class: class, Title: fmt.Sprintf("%s %s: %s", o.Kind, o.Key, request.Answer),
			})
		}
	}
	most := slices.Max(sold)
	for i, n := range sold {
		height := (salesSize - 10) * n / max(1, most)
		d.Sales = append(d.Sales, Line{X: x(time.Duration(i) * slice), Y: salesSize - 6 - height, Width: x(slice) - 0.5, Height: height, Title: fmt.Sprintf("%.0f orders", n)})
	}
	return d
}
