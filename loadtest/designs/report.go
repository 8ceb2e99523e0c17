package designs

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"

	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/stats"
)

// Report is what came of a run: shown as tables, as JSON, and as a picture.
type Report struct {
	Version   int            `json:"version"` // of this format
	StartedAt time.Time      `json:"started_at"`
	Machine   result.Machine `json:"machine"`
	Designs   []Row          `json:"designs"`
}

// Row is a design with its figures.
type Row struct {
	Name   string             `json:"name"`
	About  string             `json:"about"`
	Source string             `json:"source"`
	Wrong  bool               `json:"known_to_be_wrong"`
	Load   map[string]float64 `json:"load"`   // names have the unit; a case that the design cannot sell is missing
	Errors []string           `json:"errors"` // of buyers: of each case how many, and the first
	Tries  int                `json:"tries"`  // a design that is known to be wrong is tried again when it shows nothing
	Faults []Outcome          `json:"faults"`

	// Verdict is what went wrong in any of the faults: in which, is a matter of moments. Empty without faults.
	Verdict string `json:"verdict"`
}

// hot is the name of the figure that the picture shows.
const hot = "orders_per_second_1_sku_64_buyers"

func newRow(d Design, cases map[string]figures) Row {
	row := Row{Name: d.Name, About: d.About, Source: d.Source, Wrong: d.Wrong, Load: map[string]float64{}, Errors: []string{}}
	var behind time.Duration
	for _, one := range loadCases() {
		f, measured := cases[one.name]
		if !measured {
			continue
		}
		row.Load[one.figure], behind = f.perSecond, max(behind, f.behind)
		if one.soldOut {
			row.Load["unsold_units"] = float64(f.unsold)
		}
		if f.problem != nil {
			row.Errors = append(row.Errors, fmt.Sprintf("%s: %d errors, the first: %.200v", one.name, f.problems, f.problem))
		}
	}
	row.Load["behind_seconds"] = behind.Seconds()
	return row
}

// machine is this one, with the versions of the servers.
func machine(ctx context.Context, on Servers) result.Machine {
	m := result.ThisMachine()
	m.CPUModel = cmp.Or(m.CPUModel, "unknown processor")
	var version string
	if err := on.DB.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err == nil {
		m.DatabaseVersion = "MySQL " + version
	}
	if info, err := on.Redis.InfoMap(ctx, "Server").Result(); err == nil {
		m.RedisVersion = "Redis " + info["Server"]["redis_version"]
	}
	return m
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
	m := r.Machine
	_, err := fmt.Fprintf(out, "%s, %d cores, %s/%s, %s; %s; %s\n\n%s", m.CPUModel, m.CPUs, m.OS, m.Arch, m.Go,
		m.DatabaseVersion, m.RedisVersion, r.loads())
	if err == nil && slices.ContainsFunc(r.Designs, func(row Row) bool { return len(row.Faults) > 0 }) {
		_, err = io.WriteString(out, "\n"+r.faults())
	}
	return err
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
	for _, design := range r.Designs {
		row := table.Row{starred(design.Name, design.Wrong)}
		for _, one := range loadCases() {
			perSecond, measured := design.Load[one.figure]
			if !measured {
				row = append(row, "-")
				continue
			}
			row = append(row, thousands(perSecond))
		}
		for _, problem := range design.Errors {
			fmt.Fprintf(&problems, "%s, %s\n", design.Name, problem)
		}
		behind := fmt.Sprintf("%.1fs", design.Load["behind_seconds"])
		rows = append(rows, append(row, int64(design.Load["unsold_units"]), behind, design.Verdict))
	}
	return stats.Table(header, rows, 2, len(header)-1) + problems.String()
}

func thousands(perSecond float64) string { return humanize.Comma(int64(perSecond)) }

// faults is the table of the faults, and what they leave to do.
func (r Report) faults() string {
	var rows []table.Row
	var tasks strings.Builder
	for _, one := range r.Designs {
		for i, o := range one.Faults {
			name, seconds := "", "-"
			if i == 0 {
				name = starred(one.Name, one.Wrong)
			}
			if o.Seconds != nil {
				seconds = fmt.Sprintf("%.1fs", *o.Seconds)
			}
			rows = append(rows, table.Row{
				name, o.Fault, o.Supplied, o.Acknowledged,
				o.Lost, o.Oversold, o.Undersold, o.Untold, seconds, o.Verdict,
			})
			if o.Operator != unharmed {
				fmt.Fprintf(&tasks, "%s, %s: %s.\n", one.Name, o.Fault, o.Operator)
			}
		}
	}
	header := table.Row{
		"design", "fault", "units", "orders", "lost", "oversold", "undersold", "untold", "again", "verdict",
	}
	text := stats.Table(header, rows, 3, 9)
	if tasks.Len() > 0 {
		text += "\nWhat an operator has to do:\n" + tasks.String()
	}
	return text
}

//go:embed picture.svg
var picture string

// writeSVG draws a bar of orders/s for each design, and beside it a mark for what each fault broke.
func (r Report) writeSVG(w io.Writer) error {
	t, err := template.New("").Parse(picture)
	if err != nil {
		return err
	}
	return t.Execute(w, r.draw())
}

// drawing is the picture, in pixels.
type drawing struct {
	Width, Height int
	Subtitle      string
	Faults        []column
	Rows          []line
	Legend        []mark
}

type column struct {
	X    int
	Name []string // lines of the head
}

type line struct {
	Y, Bar        int
	Name, Rate    string
	RateX, Middle int
	Marks         []mark
}

type mark struct {
	X, Y, TextX int
	Class, Text string
}

const (
	barX     = 210 // the names stand at the left of it
	barWidth = 300
	faultX   = 610 // of the first fault; a rate fits between the longest bar and it
	perFault = 105
	headSize = 120
	rowSize  = 40
	markSize = 22 // from one to the next
)

func (r Report) draw() drawing {
	m := r.Machine
	d := drawing{
		Width: faultX + perFault*len(allFaults()), Height: headSize + rowSize*len(r.Designs) + 60,
		Subtitle: fmt.Sprintf("%s, %d cores; %s; %s", m.CPUModel, m.CPUs, m.DatabaseVersion, m.RedisVersion),
	}
	for i, f := range allFaults() {
		first, rest, _ := strings.Cut(f.name, " at ")
		if rest != "" {
			rest = "at " + rest
		}
		d.Faults = append(d.Faults, column{X: faultX + i*perFault, Name: []string{first, rest}})
	}
	fastest := 1.0
	for _, one := range r.Designs {
		fastest = max(fastest, one.Load[hot])
	}
	for i, one := range r.Designs {
		rate, y := one.Load[hot], headSize+rowSize*i
		bar := int(barWidth * rate / fastest)
		l := line{Y: y, Middle: y + rowSize/2, Bar: bar, Name: one.Name, Rate: thousands(rate), RateX: barX + bar + 8}
		for _, o := range one.Faults {
			at := slices.IndexFunc(allFaults(), func(f fault) bool { return f.name == o.Fault })
			for j, word := range strings.Split(o.Verdict, ", ") {
				l.Marks = append(l.Marks, mark{
					X: faultX + at*perFault + 8 + j*markSize, Y: l.Middle,
					Class: class(word), Text: o.Fault + ": " + word,
				})
			}
		}
		d.Rows = append(d.Rows, l)
	}
	for _, l := range []struct {
		x          int
		word, text string
	}{
		{32, unharmed, "nothing went wrong"}, {222, "lost", "lost orders"}, {352, "oversold", "oversold"},
		{472, "undersold", "undersold"}, {602, "stands still", "stands still"},
		{740, "", "empty: Redis does not decide"},
	} {
		d.Legend = append(d.Legend, mark{X: l.x, Y: d.Height - 28, TextX: l.x + 16, Class: class(l.word), Text: l.text})
	}
	return d
}

// class is the name of a verdict's mark in the picture.
func class(word string) string { return strings.ReplaceAll(word, " ", "-") }
