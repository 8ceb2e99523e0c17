package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/verdict"
)

//go:embed html
var templates embed.FS

//go:embed static
var static embed.FS

// WriteReport writes r as one HTML file. After an error, a part of it may be written.
func WriteReport(w io.Writer, r result.Report) error {
	style, err := static.ReadFile("static/report.css")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(style)
	v := newView(r, "en")
	v.Policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	v.Style = template.CSS(style) //nolint:gosec // our own file
	return execute(w, "report.html", v)
}

// WriteBars writes the bars of r, units sold against units supplied, as an SVG file.
func WriteBars(w io.Writer, r result.Report) error {
	return execute(w, "bars.svg", newView(r, "en"))
}

func execute(w io.Writer, name string, data any) error {
	t, err := template.New("").Funcs(template.FuncMap{"has": slices.Contains[[]string]}).ParseFS(templates, "html/*")
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, name, data)
}

// view is what the templates show, in words and percentages.
type view struct {
	Policy     string
	Style      template.CSS
	Lead       string
	Expected   string
	Broken     bool
	Columns    []result.Column
	Strategies []strategyView
	Facts      []fact
	Command    string
	Height     int // of an SVG in pixels, as the Y of a strategy
}

type strategyView struct {
	result.Strategy
	ID       string
	Word     word
	Said     string // what came of it, as a sentence
	Bar      bar
	Timeline *timeline // nil if there is nothing to show
	Y        int
}

// word is a verdict for people. Its class is its colour.
type word struct{ Class, Mark, Text string }

type fact struct{ Name, Value string }

func newView(r result.Report, language string) view {
	const head, row = 34, 44 // pixels of an SVG
	v := view{
		Lead: r.Run.Lead(), Expected: r.Expected(language), Broken: r.Broken(), Columns: result.Columns(),
		Facts: facts(r, language), Command: r.Run.Command, Height: head + row*len(r.Strategies),
	}
	var most int64 = 1
	for _, s := range r.Strategies {
		most = max(most, s.Supplied+s.Oversold, s.UnitsSold)
	}
	for i, s := range r.Strategies {
		v.Strategies = append(v.Strategies, strategyView{
			Strategy: s, ID: "strategy-" + strconv.Itoa(i+1), Word: wordOf(s, language), Said: s.Outcome(language),
			Bar: newBar(s, most, language), Timeline: newTimeline(s.Timeline, language), Y: head + row*i,
		})
	}
	return v
}

func wordOf(s result.Strategy, language string) word {
	switch {
	case s.NotCaught():
		return word{"poor", "?", lang.Text(language, "not caught in this race")}
	case s.Correct():
		return word{"good", "✓", lang.Text(language, "correct")}
	case s.Verdict == verdict.Oversold:
		return word{"bad", "✕", lang.Text(language, "oversold by %s", humanize.Comma(s.Oversold))}
	case s.Verdict == verdict.Undersold:
		return word{"poor", "−", lang.Text(language, "undersold by %s", humanize.Comma(s.Undersold))}
	}
	return word{"bad", "≠", lang.Text(language, string(s.Verdict))}
}

// facts are what the figures depend on. What is not known is left out.
func facts(r result.Report, language string) []fact {
	instances := ""
	if r.Run.Instances > 0 {
		instances = strconv.Itoa(r.Run.Instances)
	}
	all := []fact{
		{"When", r.StartedAt.UTC().Format(lang.Text(language, "2 January 2006, 15:04 UTC"))},
		{"Buyers", humanize.Comma(int64(r.Run.Buyers))},
		{"Units for sale", humanize.Comma(r.Run.Stock)},
		{"Shop", r.Run.Target},
		{"Shop instances", instances},
		{"Think time", lang.Text(language, "%s between reading the stock and writing it", result.Milliseconds(r.Run.ThinkMS))},
		{"Database", join(r.Machine.DatabaseVersion, r.Machine.Database)},
		{"Redis", join(r.Machine.RedisVersion, r.Machine.Redis)},
		{"Machine", lang.Text(language, "%s/%s, %d CPUs", r.Machine.OS, r.Machine.Arch, r.Machine.CPUs)},
		{"CPU", r.Machine.CPUModel},
		{"Go", r.Machine.Go},
		{"Commit", r.Machine.Commit},
	}
	for _, n := range r.NotRun {
		all = append(all, fact{"Not run", n.Name + ": " + n.Reason})
	}
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

func join(version, where string) string {
	if version == "" || where == "" {
		return version + where
	}
	return version + "; " + where
}

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
