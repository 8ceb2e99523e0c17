package designs

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"

	"example.com/shop/internal/order"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/stats"
)

// Report is what came of a run: shown as tables, as JSON, and as a picture.
type Report struct {
	Version   int            `json:"version"` // of this format
	StartedAt time.Time      `json:"started_at"`
	Machine   result.Machine `json:"machine"`
	Designs   []*Row         `json:"designs"`
}

// Row is a design with its figures.
type Row struct {
	Design
	Load    map[string]float64 `json:"load"`   // names have the unit; a case that the design cannot sell is missing
	Errors  []string           `json:"errors"` // of buyers: of each case how many, and the first
	Tries   int                `json:"tries"`  // a design that is known to be wrong is tried again when it shows nothing
	Faults  []Outcome          `json:"faults"`
	Verdict string             `json:"verdict"` // what went wrong in any of the faults; empty without faults
}

// loadCase is a crowd, and the units that it wants.
type loadCase struct {
	name, figure        string // in the table, and in the JSON
	skus, buyers, lines int
	units               int64 // of each SKU
}

const (
	plenty = 100_000_000                         // units, more than any case sells
	scarce = 1_000                               // units, soon sold out: refusals are counted
	hot    = "orders_per_second_1_sku_64_buyers" // the figure that the picture shows
)

func loadCases() []loadCase {
	return []loadCase{
		{"1 SKU, 64", hot, 1, 64, 1, plenty},
		{"1 SKU, 512", "orders_per_second_1_sku_512_buyers", 1, 512, 1, plenty},
		{"64 SKUs, 64", "orders_per_second_64_skus_64_buyers", 64, 64, 1, plenty},
		{"64 SKUs, 512", "orders_per_second_64_skus_512_buyers", 64, 512, 1, plenty},
		{"carts, 64", "orders_per_second_carts_of_3_64_buyers", 64, 64, 3, plenty},
		{"refused", "refusals_per_second_64_buyers", 1, 64, 1, scarce},
	}
}

// measure lets the crowd of a case buy fresh SKUs from the design, and adds the figures to the row. Answers count
// after half a second of warm-up.
func (row *Row) measure(ctx context.Context, on Servers, c loadCase, length time.Duration) error {
	units := map[string]int64{}
	for range c.skus {
		units[order.NewID()] = c.units
	}
	if err := row.putUpForSale(ctx, on, units); err != nil {
		return err
	}
	seller := row.open(ctx, on)
	var problem atomic.Value
	answers := map[string]*atomic.Int64{sold: {}, refused: {}, failed: {}}
	count := func(r receipt) {
		answers[r.Answer].Add(1)
		if r.Answer == failed {
			problem.CompareAndSwap(nil, r.Reason)
		}
	}
	buyers, measured := crowd{seller, slices.Sorted(maps.Keys(units)), c.buyers, c.lines}, sold
	if c.units == scarce {
		buyers.run(ctx, func(r receipt) bool { count(r); return answers[refused].Load() == 0 })
		row.Load["unsold_units"], measured = float64(scarce-answers[sold].Load()), refused
	}
	var inTime atomic.Int64
	from := time.Now().Add(min(length, 500*time.Millisecond))
	to := from.Add(length)
	buyers.run(ctx, func(r receipt) bool {
		if count(r); r.Answer == measured && r.Answered.After(from) && r.Answered.Before(to) {
			inTime.Add(1)
		}
		return r.Answered.Before(to)
	})
	row.Load[c.figure] = float64(inTime.Load()) / length.Seconds()
	ended := time.Now()
	err := errors.Join(seller.Close(), context.Cause(ctx))
	row.Load["behind_seconds"] = max(row.Load["behind_seconds"], time.Since(ended).Seconds())
	if n := answers[failed].Load(); n > 0 {
		row.Errors = append(row.Errors, fmt.Sprintf("%s, %s: %d errors, such as %.200v", row.Name, c.name, n, problem.Load()))
	}
	return err
}

// asKnown returns an error if a right design was harmed, or a wrong one was not.
func (r Report) asKnown() (err error) {
	for _, one := range r.Designs {
		if one.Verdict != "" && (one.Verdict != unharmed) != one.Wrong {
			err = errors.Join(err, fmt.Errorf("%s is not as it is known to be: its verdict is %s", one.Name, one.Verdict))
		}
	}
	return err
}

// write writes the tables, and below them the errors of buyers and what an operator has to do.
func (r Report) write(out io.Writer) error {
	header := table.Row{"design"}
	for _, c := range loadCases() {
		header = append(header, c.name)
	}
	header = append(header, "unsold", "behind", "verdict")
	var loads, faults []table.Row
	var notes []string
	for _, one := range r.Designs {
		name, row := one.starred(), table.Row{one.starred()}
		for _, c := range loadCases() {
			cell := "-"
			if perSecond, measured := one.Load[c.figure]; measured {
				cell = thousands(perSecond)
			}
			row = append(row, cell)
		}
		behind := fmt.Sprintf("%.1fs", one.Load["behind_seconds"])
		loads = append(loads, append(row, int64(one.Load["unsold_units"]), behind, one.Verdict))
		notes = append(notes, one.Errors...)
		for _, o := range one.Faults {
			again := "-"
			if o.Seconds != nil {
				again = fmt.Sprintf("%.1fs", *o.Seconds)
			}
			faults = append(faults, table.Row{
				name, o.Fault, o.Supplied, o.Acknowledged, o.Lost, o.Oversold, o.Undersold, o.Left, again, o.Verdict,
			})
			if name = ""; o.Operator != unharmed {
				notes = append(notes, fmt.Sprintf("%s, %s: an operator has to %s.", one.Name, o.Fault, o.Operator))
			}
		}
	}
	text := r.servers() + "\n\n" + stats.Table(header, loads, 2, len(header)-1)
	if faults != nil {
		text += "\n" + stats.Table(table.Row{
			"design", "fault", "units", "orders", "lost", "oversold", "undersold", "left", "again", "verdict",
		}, faults, 3, 9)
	}
	for _, note := range notes {
		text += "\n" + note
	}
	_, err := io.WriteString(out, text+"\n")
	return err
}

// servers is the machine and the servers, which the figures depend on.
func (r Report) servers() string {
	m := r.Machine
	return fmt.Sprintf("%s, %d cores; %s; %s", m.CPUModel, m.CPUs, m.DatabaseVersion, m.RedisVersion)
}

func thousands(perSecond float64) string { return humanize.Comma(int64(perSecond)) }

// starred is the name, with a star if the design is known to be wrong.
func (d Design) starred() string {
	if d.Wrong {
		return d.Name + " *"
	}
	return d.Name
}

//go:embed picture.svg
var picture string

// writeSVG draws a bar of orders/s for each design, and beside it what each fault broke.
func (r Report) writeSVG(w io.Writer) error {
	names := order.Map(allFaults(), func(f fault) string { return f.name })
	rates := order.Map(r.Designs, func(one *Row) float64 { return one.Load[hot] })
	var bars []map[string]any
	for i, one := range r.Designs {
		broken := slices.Repeat([]string{"-"}, len(names))
		for _, o := range one.Faults {
			broken[slices.Index(names, o.Fault)] = o.Verdict
		}
		width := int(250 * rates[i] / max(1, slices.Max(rates))) // in pixels
		bars = append(bars, map[string]any{"Name": one.Name, "Rate": thousands(rates[i]), "Width": width, "Broken": broken})
	}
	functions := template.FuncMap{"at": func(first, step, i int) int { return first + step*i }}
	t, err := template.New("").Funcs(functions).Parse(picture)
	if err != nil {
		return err
	}
	return t.Execute(w, map[string]any{"Bars": bars, "Faults": names, "Servers": r.servers(), "Height": 112 + 36*len(bars)})
}
