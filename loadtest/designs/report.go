package designs

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
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
	Load   map[string]float64 `json:"load"`   // names have the unit; a case that the design cannot sell is missing
	Errors []string           `json:"errors"` // of buyers: of each case how many, and the first
	Tries  int                `json:"tries"`  // a design that is known to be wrong is tried again when it shows nothing
	Faults []Outcome          `json:"faults"`

	// Verdict is what went wrong in any of the faults: in which, is a matter of moments. Empty without faults.
	Verdict string `json:"verdict"`
}

// unlike names the designs that were not as they are known to be.
func (r Report) unlike() (names []string) {
	for _, one := range r.Designs {
		if one.Verdict != "" && (one.Verdict != unharmed) != one.Wrong {
			names = append(names, one.Name)
		}
	}
	return names
}

// write writes the tables.
func (r Report) write(out io.Writer) error {
	var broken []Outcome
	var problems, tasks []string
	for _, one := range r.Designs {
		broken, problems = append(broken, one.Faults...), append(problems, one.Errors...)
		for _, o := range one.Faults {
			if o.Operator != unharmed {
				tasks = append(tasks, fmt.Sprintf("%s, %s: %s.", one.Name, o.Fault, o.Operator))
			}
		}
	}
	parts := []string{r.servers() + "\n", tabulate(loadColumns(), r.Designs, 2) + strings.Join(problems, "\n")}
	if broken != nil {
		parts = append(parts, tabulate(faultColumns(), broken, 3))
	}
	if tasks != nil {
		parts = append(parts, "What an operator has to do:\n"+strings.Join(tasks, "\n")+"\n")
	}
	_, err := io.WriteString(out, strings.Join(parts, "\n"))
	return err
}

// servers is the machine and the servers, which the figures depend on.
func (r Report) servers() string {
	m := r.Machine
	return fmt.Sprintf("%s, %d cores; %s; %s", m.CPUModel, m.CPUs, m.DatabaseVersion, m.RedisVersion)
}

// column is a column of a table, and its line in the help.
type column[T any] struct {
	name, about string
	show        func(T) any
}

// tabulate is a table, whose columns from this one to the last but one stand at the right.
func tabulate[T any](columns []column[T], all []T, from int) string {
	var header table.Row
	rows := make([]table.Row, len(all))
	for _, c := range columns {
		header = append(header, c.name)
		for i, one := range all {
			rows[i] = append(rows[i], c.show(one))
		}
	}
	return stats.Table(header, rows, from, len(columns)-1)
}

func loadColumns() []column[*Row] {
	columns := []column[*Row]{{"design", "its name", func(r *Row) any { return r.starred() }}}
	for _, c := range loadCases() {
		columns = append(columns, column[*Row]{c.name, c.about, func(r *Row) any {
			if perSecond, measured := r.Load[c.figure]; measured {
				return thousands(perSecond)
			}
			return "-"
		}})
	}
	return append(columns, []column[*Row]{
		{"unsold", "units of these 1,000 that were for sale when the first buyer was refused",
			func(r *Row) any { return int64(r.Load["unsold_units"]) }},
		{"behind", "from the last answer until the last order was written",
			func(r *Row) any { return fmt.Sprintf("%.1fs", r.Load["behind_seconds"]) }},
		{"verdict", "what went wrong in any of the faults", func(r *Row) any { return r.Verdict }},
	}...)
}

func faultColumns() []column[Outcome] {
	return []column[Outcome]{
		{"design", "its name", func(o Outcome) any { return o.design.starred() }},
		{"fault", "its name", func(o Outcome) any { return o.Fault }},
		{"units", "the supply", func(o Outcome) any { return o.Supplied }},
		{"orders", "acknowledged orders", func(o Outcome) any { return o.Acknowledged }},
		{"lost", "acknowledged orders without a row", func(o Outcome) any { return o.Lost }},
		{"oversold", "units in orders above the supply", func(o Outcome) any { return o.Oversold }},
		{"undersold", "units for sale when a buyer was told that the SKU is sold out", func(o Outcome) any { return o.Undersold }},
		{"left", "units that nobody had bought in the end", func(o Outcome) any { return o.Left }},
		{"again", "the longest time without a sale, from the fault on; - if nothing was sold after it", func(o Outcome) any {
			if o.Seconds == nil {
				return "-"
			}
			return fmt.Sprintf("%.1fs", *o.Seconds)
		}},
		{"verdict", "what went wrong", func(o Outcome) any { return o.Verdict }},
	}
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
	type bar struct {
		Name, Rate string
		Width      int      // in pixels
		Broken     []string // by each fault
	}
	fastest := 1.0
	for _, one := range r.Designs {
		fastest = max(fastest, one.Load[hot])
	}
	names := order.Map(allFaults(), func(f fault) string { return f.name })
	var bars []bar
	for _, one := range r.Designs {
		rate := one.Load[hot]
		broken := slices.Repeat([]string{"-"}, len(names))
		for _, o := range one.Faults {
			broken[slices.Index(names, o.Fault)] = o.Verdict
		}
		bars = append(bars, bar{one.Name, thousands(rate), int(250 * rate / fastest), broken})
	}
	at := func(first, step, i int) int { return first + step*i }
	t, err := template.New("").Funcs(template.FuncMap{"at": at}).Parse(picture)
	if err != nil {
		return err
	}
	return t.Execute(w, map[string]any{"Bars": bars, "Faults": names, "Servers": r.servers(), "Height": 112 + 36*len(bars)})
}
