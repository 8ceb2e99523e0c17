package faults

import (
	_ "embed"
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

// report is the result of a run. It is written as a table, as JSON, and as timelines in one HTML file.
type report struct {
	Version   int                `json:"version"` // of this format
	StartedAt time.Time          `json:"started_at"`
	Histories []*history.History `json:"histories"`
}

func (r report) broken() bool {
	return slices.ContainsFunc(r.Histories, func(h *history.History) bool { return len(h.Violations) > 0 })
}

// writeTable writes a line for each fault, which has the given number of histories, and the violations.
func (r report) writeTable(out io.Writer, times int) error {
	var rows []table.Row
	undecided := 0
	for histories := range slices.Chunk(r.Histories, times) {
		var recovery, gap []time.Duration
		violations, orders := 0, 0
		for _, h := range histories {
			recovery, gap = append(recovery, h.Recovery), append(gap, h.Gap)
			violations, orders = violations+len(h.Violations), orders+h.Sold
			if h.Undecided {
				undecided++
			}
		}
		rows = append(rows, table.Row{histories[0].Fault, histories[0].Kind, len(histories), orders, violations,
			short(stats.Median(recovery)), short(slices.Max(recovery)), short(stats.Median(gap)), short(slices.Max(gap))})
	}
	text := fmt.Sprintf("%s\n%d histories, %d undecided by Porcupine\n",
		stats.Table(table.Row{"fault", "servers", "histories", "orders", "violations", "recovery", "longest", "no sale for", "longest"}, rows, 3, 9),
		len(r.Histories), undecided)
	for _, h := range r.Histories {
		for _, v := range h.Violations {
			text += fmt.Sprintf("%s, seed %d: %s: %s\n", h.Fault, h.Seed, v.Check, v.Detail)
		}
	}
	_, err := io.WriteString(out, text)
	return err
}

func short(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

//go:embed timelines.html
var timelines string

// writeHTML writes the timelines of the histories that have operations, in one file that needs no network.
func (r report) writeHTML(w io.Writer) error {
	t, err := template.New("").Funcs(template.FuncMap{"short": short, "checks": checks.All, "draw": draw}).Parse(timelines)
	if err != nil {
		return err
	}
	return t.Execute(w, r)
}

// drawing shows a history as rectangles: the sales at the top, and a row for each shop below.
type drawing struct {
	Width, Height float64
	Rects         []rect // the fault is the first
	Seconds       []float64
}

// rect shows the fault, a request, or the sales of a slice of time, in pixels.
type rect struct {
	X, Y, Width, Height float64
	Class, Title        string
}

const (
	pixels    = 1000.0 // width of the drawing
	rows      = 24     // of concurrent requests, for each shop
	rowSize   = 3.0
	shopSize  = rows*rowSize + 8
	salesSize = 60.0
	slice     = 50 * time.Millisecond
)

// draw draws a history that has operations.
func draw(h *history.History) drawing {
	length := time.Duration(1)
	for _, o := range h.Operations {
		length = max(length, o.Last().Answered)
	}
	x := func(d time.Duration) float64 { return pixels * float64(d) / float64(length) }
	d := drawing{Width: pixels, Height: salesSize + system.Instances*shopSize}
	add := func(class, title string, from, to time.Duration, y, height float64) {
		d.Rects = append(d.Rects, rect{x(from), y, max(1.5, x(to-from)), height, class, title})
	}
	for second := time.Duration(0); second < length; second += time.Second {
		d.Seconds = append(d.Seconds, x(second))
	}
	add("fault", h.Fault, h.Broken, h.Healed, 0, d.Height)
	sold := make([]float64, length/slice+1)
	for _, o := range h.Sales() {
		sold[o.Last().Answered/slice]++
	}
	for i, n := range sold {
		from, height := time.Duration(i)*slice, (salesSize-10)*n/max(1, slices.Max(sold))
		add("bar", fmt.Sprintf("%.0f orders", n), from, from+slice, salesSize-6-height, height)
	}
	free := map[int][]time.Duration{} // by shop, the times from which the rows are free
	for _, o := range h.Operations {
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
			y := salesSize + float64(request.Shop)*shopSize + float64(row%rows)*rowSize
			add(class, fmt.Sprintf("%s %s: %s", o.Kind, o.Key, request.Answer), request.Sent, request.Answered, y, rowSize-1)
		}
	}
	return d
}
