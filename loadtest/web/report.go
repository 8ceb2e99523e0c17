package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strconv"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
)

//go:embed html
var templates embed.FS

//go:embed static
var static embed.FS

// WriteReport writes r as one HTML file, in a language. After an error, a part of it may be written.
func WriteReport(w io.Writer, r result.Report, language string) error {
	style, err := static.ReadFile("static/report.css")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(style)
	v := newView(r, language)
	v.Policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	v.Style = template.CSS(style) //nolint:gosec // our own file
	return execute(w, "report.html", language, v)
}

// WritePicture writes what the strategies of r sold over time, against the supply, as an SVG file for a
// slide, in a language.
func WritePicture(w io.Writer, r result.Report, language string) error {
	return execute(w, "chart.svg", language, soldOverTime(r, language).draw(language)[0])
}

// texts are what a reader sees or hears of a page: text nodes, and the names of pictures.
var texts = regexp.MustCompile(`(>\s*|aria-label=")([^<>"\s][^<>"]*?)(\s*<|")`)

// marks are Chinese punctuation marks with white space behind them, which a browser would show.
var marks = regexp.MustCompile(`([，。；：？！）](?:</\w+>)*)\s+`)

// execute shows data by a template, in a language. The function text translates a text with values in it; any other
// text of the template is translated as static/text.js translates the texts of the page.
func execute(w io.Writer, name, language string, data any) error {
	t, err := template.New("").Funcs(template.FuncMap{
		"language": func() string { return language },
		"text":     func(english string, values ...any) string { return lang.Text(language, english, values...) },
		"server":   func(name string) string { return result.Server(name, language) },
		"steps":    func() []segment { return steps(language) },
		"columns":  result.Columns,
		"comma":    humanize.Comma,
		"ms":       result.Milliseconds,
		"share":    func(part, whole int) percent { return share(int64(part), int64(whole)) },
		"rest":     func(p percent) percent { return 100 - p },
	}).ParseFS(templates, "html/*")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	page := texts.ReplaceAllFunc(b.Bytes(), func(found []byte) []byte {
		part := texts.FindSubmatch(found)
		text := lang.Text(language, html.UnescapeString(string(part[2])))
		return slices.Concat(part[1], []byte(html.EscapeString(text)), part[3])
	})
	_, err = w.Write(marks.ReplaceAll(page, []byte("$1")))
	return err
}

// view is what the templates show of a report.
type view struct {
	result.Report
	Policy     string
	Style      template.CSS
	Strategies []strategyView

	Sold     []drawing // wide and narrow, as all charts
	Compared [][]drawing
}

type strategyView struct {
	result.Strategy
	ID        string
	Word      word
	Bar       bar
	Timeline  *timeline // nil if there is nothing to show
	Collision *timeline // the two requests that collided, alone; nil if none did
	Stock     []drawing // the stock column beside the orders; empty if there is nothing to show
}

// bar shows units sold against units supplied. All bars have one scale, which leaves room at the right for the line of
// the supply.
type bar struct {
	Supply percent // where the line of the supply is
	Sold   percent // of what was in stock
	Over   percent // of what was not
}

// word is a verdict for people. Its class is its colour.
type word struct{ Class, Mark, Text string }

func newView(r result.Report, language string) view {
	v := view{Report: r, Sold: soldOverTime(r, language).draw(language), Compared: compared(r, language)}
	var most int64 = 1
	for _, s := range r.Strategies {
		most = max(most, s.Supplied+s.Oversold, s.UnitsSold)
	}
	const room = 0.99
	for i, s := range r.Strategies {
		one := strategyView{
			Strategy: s, ID: "strategy-" + strconv.Itoa(i+1), Word: wordOf(s, language), Stock: stockBesideOrders(s, language),
			Bar: bar{room * share(s.Supplied, most), room * share(max(0, s.UnitsSold-s.Oversold), most), room * share(s.Oversold, most)},
		}
		if t := s.Timeline; t != nil {
			one.Timeline = newTimeline(t.Requests, t.Pair, language)
			if len(t.Pair) > 0 {
				one.Collision = newTimeline([]crowd.Request{t.Requests[t.Pair[0]], t.Requests[t.Pair[1]]}, []int{0, 1}, language)
			}
		}
		v.Strategies = append(v.Strategies, one)
	}
	return v
}

func wordOf(s result.Strategy, language string) word {
	switch {
	case s.NotCaught():
		return word{"poor", "?", lang.Text(language, "not caught in this race")}
	case s.Correct():
		return word{"good", "✓", lang.Text(language, "correct")}
	case s.Verdict == result.Oversold:
		return word{"bad", "✕", lang.Text(language, "oversold by %s", humanize.Comma(s.Oversold))}
	case s.Verdict == result.Undersold:
		return word{"poor", "−", lang.Text(language, "undersold by %s", humanize.Comma(s.Undersold))}
	}
	return word{"bad", "≠", lang.Text(language, string(s.Verdict))}
}

// percent is a length or a place on the page.
type percent float64

func (p percent) String() string { return fmt.Sprintf("%.2f%%", float64(p)) }

func share(part, whole int64) percent {
	return percent(100 * float64(part) / float64(max(1, whole)))
}

// timeline shows requests one below the other, on one axis of time.
type timeline struct {
	Sentence   string
	Lanes      []lane
	Start, End string // of the axis
}

// lane is one request.
type lane struct {
	crowd.Request
	Marked          bool // one of the pair
	Segments        []segment
	ReadAt, WroteAt percent
	Anchor          string // of the text beside ReadAt
	More            bool   // it goes on behind the end of the axis
}

type segment struct {
	Class, Title, Colour string
	X, Width             percent
}

// steps are the segments of a lane, in a key: what they mean.
func steps(language string) []segment {
	return []segment{
		{Class: "wait", Title: lang.Text(language, "waits for the lock"), Colour: "#dde1e5"},
		{Class: "read", Title: lang.Text(language, "reads"), Colour: "#77a9d6"},
		{Class: "think", Title: lang.Text(language, "thinks"), Colour: "#e3b04b"},
		{Class: "write", Title: lang.Text(language, "writes and commits"), Colour: "#2f6fae"},
		{Class: "release", Title: lang.Text(language, "releases the lock"), Colour: "#9aa5b0"},
	}
}

// newTimeline shows requests, of which the pair, if there is one, collided.
func newTimeline(all []crowd.Request, pair []int, language string) *timeline {
	w := newWindow(all, pair)
	t := &timeline{Start: milliseconds(w.from), End: milliseconds(w.to), Sentence: sentence(all, pair, language)}
	for i, r := range all {
		t.Lanes = append(t.Lanes, newLane(r, slices.Contains(pair, i), w, language))
	}
	return t
}

// sentence is what the timeline shows, in a language.
func sentence(all []crowd.Request, pair []int, language string) string {
	if len(pair) > 0 {
		a, b := all[pair[0]], all[pair[1]]
		return lang.Text(language, "%s and %s both read %s and both wrote %s: only one of the two units is subtracted.",
			a.Buyer, b.Buyer, humanize.Comma(a.Seen), humanize.Comma(*a.Wrote))
	}
	read := map[int64]int64{}
	for _, r := range all {
		if r.Accepted && r.Wrote == nil {
			if read[r.Seen]++; read[r.Seen] > 1 {
				return lang.Text(language,
					"Several accepted requests read %s, but none wrote back what it computed from that: the database subtracted for each.",
					humanize.Comma(r.Seen))
			}
		}
	}
	return lang.Text(language, "No two accepted requests among these read the same stock.")
}

// window is the part of a timeline that is shown, in microseconds.
type window struct{ from, to int64 }

// newWindow begins shortly before the first request works, however long it waited for the lock, and ends when all have
// read and those of interest have committed: the pair, or without one, all.
func newWindow(all []crowd.Request, pair []int) window {
	w := window{from: all[0].Read}
	for i, r := range all {
		w.from, w.to = min(w.from, cmp.Or(r.LockHeld, r.Begun)), max(w.to, r.Read)
		if len(pair) == 0 || slices.Contains(pair, i) {
			w.to = max(w.to, r.Committed, r.Released)
		}
	}
	margin := (w.to - w.from) / 20
	return window{from: max(0, w.from-margin), to: max(w.from+1, w.to+margin)}
}

// at is the place of a moment, at the edge if it is outside.
func (w window) at(us int64) percent {
	return share(min(max(us, w.from), w.to)-w.from, w.to-w.from)
}

func newLane(r crowd.Request, marked bool, w window, language string) lane {
	l := lane{
		Request: r, Marked: marked, ReadAt: w.at(r.Read), WroteAt: w.at(max(r.Written, r.Committed)), Anchor: "start",
		More: max(r.Read, r.Committed, r.Released) > w.to,
	}
	if l.ReadAt > 80 {
		l.Anchor = "end"
	}
	add := func(step segment, from, to int64) {
		if from < to && from < w.to && to > w.from {
			step.Title = lang.Text(language, "%s: %s", step.Title, milliseconds(to-from))
			step.X, step.Width = w.at(from), max(0.3, w.at(to)-w.at(from))
			l.Segments = append(l.Segments, step)
		}
	}
	steps, reading := steps(language), r.Begun
	add(steps[0], r.LockAsked, r.LockHeld)
	if r.LockHeld < r.Read { // else it read before
		reading = max(r.Begun, r.LockHeld)
	}
	add(steps[1], reading, r.Read)
	add(steps[2], max(r.Read, r.LockHeld), r.Writing)
	add(steps[3], r.Writing, max(r.Written, r.Committed))
	add(steps[4], max(r.Read, r.Committed), r.Released)
	return l
}

func milliseconds(us int64) string { return result.Milliseconds(float64(us) / 1000) }
