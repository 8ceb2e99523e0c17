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
	_, err := fmt.Fprintf(out, "%s\n\n%s%s", r.servers(), r.loads(), r.faults())
	return err
}

// servers is the machine and the servers, which the figures depend on.
func (r Report) servers() string {
	m := r.Machine
	return fmt.Sprintf("%s, %d cores; %s; %s", m.CPUModel, m.CPUs, m.DatabaseVersion, m.RedisVersion)
}

// loads is the table of the cases.
func (r Report) loads() string {
	header := table.Row{"design"}
	for _, one := range loadCases() {
		header = append(header, one.name)
	}
	header = append(header, "unsold", "behind", "verdict")
	var rows []table.Row
	var problems strings.Builder
	for _, one := range r.Designs {
		row := table.Row{one.starred()}
		for _, c := range loadCases() {
			cell := "-"
			if perSecond, measured := one.Load[c.figure]; measured {
				cell = thousands(perSecond)
			}
			row = append(row, cell)
		}
		behind := fmt.Sprintf("%.1fs", one.Load["behind_seconds"])
		rows = append(rows, append(row, int64(one.Load["unsold_units"]), behind, one.Verdict))
		for _, problem := range one.Errors {
			problems.WriteString(problem + "\n")
		}
	}
	return stats.Table(header, rows, 2, len(header)-1) + problems.String()
}

func thousands(perSecond float64) string { return humanize.Comma(int64(perSecond)) }

// starred is the name, with a star if the design is known to be wrong.
func (d Design) starred() string {
	if d.Wrong {
		return d.Name + " *"
	}
	return d.Name
}

// faults is the table of the faults, if there were any, and what they leave to do.
func (r Report) faults() string {
	var rows []table.Row
	var tasks strings.Builder
	for _, one := range r.Designs {
		name := one.starred()
		for _, o := range one.Faults {
			seconds := "-"
			if o.Seconds != nil {
				seconds = fmt.Sprintf("%.1fs", *o.Seconds)
			}
			rows = append(rows, table.Row{
				name, o.Fault, o.Supplied, o.Acknowledged, o.Lost, o.Oversold, o.Undersold, o.Left, seconds, o.Verdict,
			})
			if name = ""; o.Operator != unharmed {
				fmt.Fprintf(&tasks, "%s, %s: %s.\n", one.Name, o.Fault, o.Operator)
			}
		}
	}
	if rows == nil {
		return ""
	}
	text := "\n" + stats.Table(table.Row{
		"design", "fault", "units", "orders", "lost", "oversold", "undersold", "left", "again", "verdict",
	}, rows, 3, 9)
	if tasks.Len() > 0 {
		text += "\nWhat an operator has to do:\n" + tasks.String()
	}
	return text
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
