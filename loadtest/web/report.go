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
	"strings"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/faults"
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
	return render(w, "report.html", v)
}

// WritePicture writes what the strategies of r sold over time, against the supply, as an SVG file for a slide, in a language.
func WritePicture(w io.Writer, r result.Report, language string) error {
	return execute(w, "chart.svg", soldOverTime(r, language).draw()[0])
}

// texts are what a reader sees or hears of a page: text nodes, and the names of pictures.
var texts = regexp.MustCompile(`(>\s*|aria-label=")([^<>"\s][^<>"]*?)(\s*<|")`)

// render shows a view by a template. The texts of the template are translated as static/text.js translates those of the lab.
func render(w io.Writer, name string, v view) error {
	var b bytes.Buffer
	if err := execute(&b, name, v); err != nil {
		return err
	}
	page := texts.ReplaceAllFunc(b.Bytes(), func(found []byte) []byte {
		part := texts.FindSubmatch(found)
		text := lang.Text(v.Language, html.UnescapeString(string(part[2])))
		return slices.Concat(part[1], []byte(html.EscapeString(text)), part[3])
	})
	_, err := w.Write(marks.ReplaceAll(page, []byte("$1")))
	return err
}

// marks are those of Chinese, with what would be a blank in a browser behind them.
var marks = regexp.MustCompile(`([，。；：？！）](?:</\w+>)*)\s+`)

func execute(w io.Writer, name string, data any) error {
	t, err := template.New("").Funcs(template.FuncMap{"has": slices.Contains[[]string]}).ParseFS(templates, "html/*")
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, name, data)
}

// view is what the templates show, in words and percentages.
type view struct {
	result.Report
	Language   string
	Lead       string
	Policy     string
	Style      template.CSS
	Expected   string
	Columns    []result.Column
	Strategies []strategyView
	Facts      []fact

	Sold     []drawing // wide and narrow, as all pictures
	Compared [][]drawing
}

type strategyView struct {
	result.Strategy
	ID       string
	Word     word
	Said     string // what came of it, as a sentence
	Remarks  []string
	Bar      bar
	Timeline *timeline // nil if there is nothing to show
	Stock    []drawing // the stock column beside the orders; empty if there is nothing to show
}

// word is a verdict for people. Its class is its colour.
type word struct{ Class, Mark, Text string }

type fact struct{ Name, Value string }

func newView(r result.Report, language string) view {
	v := view{
		Report: r, Language: language, Lead: r.Run.Lead(language), Expected: r.Expected(language), Columns: result.Columns(), Facts: facts(r, language),
		Sold: soldOverTime(r, language).draw(), Compared: compared(r, language),
	}
	var most int64 = 1
	for _, s := range r.Strategies {
		most = max(most, s.Supplied+s.Oversold, s.UnitsSold)
	}
	for i, s := range r.Strategies {
		v.Strategies = append(v.Strategies, strategyView{
			Strategy: s, ID: "strategy-" + strconv.Itoa(i+1), Word: wordOf(s, language), Said: s.Outcome(language), Remarks: s.Remarks(language),
			Bar: newBar(s, most, language), Timeline: newTimeline(s.Name, s.Timeline, language),
			Stock: stockBesideOrders(s, language),
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
	case s.Verdict == result.Oversold:
		return word{"bad", "✕", lang.Text(language, "oversold by %s", humanize.Comma(s.Oversold))}
	case s.Verdict == result.Undersold:
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
	database, redis := r.Machine.Servers(language)
	all := []fact{
		{"When", r.StartedAt.UTC().Format(lang.Text(language, "2 January 2006, 15:04 UTC"))},
		{"Buyers", humanize.Comma(int64(r.Run.Buyers))},
		{"Units for sale", humanize.Comma(r.Run.Stock)},
		{"Shop", r.Run.Target},
		{"Shop instances", instances},
		{"Think time", lang.Text(language, "%s between reading the stock and writing it", result.Milliseconds(r.Run.ThinkMS))},
		{"Database", strings.Trim(lang.Text(language, r.Machine.DatabaseVersion)+lang.Text(language, "; ")+database, "; ；")},
		{"Redis", strings.Trim(lang.Text(language, r.Machine.RedisVersion)+lang.Text(language, "; ")+redis, "; ；")},
		{"Machine", lang.Text(language, "%s/%s, %d CPUs", r.Machine.OS, r.Machine.Arch, r.Machine.CPUs)},
		{"CPU", r.Machine.CPUModel},
		{"Go", r.Machine.Go},
		{"Commit", r.Machine.Commit},
	}
	for _, n := range r.NotRun {
		all = append(all, fact{"Not run", lang.Text(language, "%s: %s", n.Name, lang.Text(language, n.Reason))})
	}
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
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
	Left   string // in the stock column
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
		Left:   lang.Text(language, "stock column: %s left", humanize.Comma(s.StockLeft)),
	}
}

// failoverView is a failover with a bar of its acknowledged orders.
type failoverView struct {
	faults.Failover
	Group      bool // of three, else a primary and a replica
	Kept, Over percent
}

func failoverViews(all []faults.Failover) (views []failoverView) {
	for _, f := range all {
		sold := int64(f.Sold)
		views = append(views, failoverView{f, f.Servers == faults.GroupOfThree, share(sold-int64(f.Lost), sold), share(int64(f.Lost), sold)})
	}
	return views
}

// timeline shows requests one below the other, on one axis of time.
type timeline struct {
	Sentence   string
	Pair       bool // two requests collided
	Lanes      []lane
	Start, End string // of the axis
	Collision  []collision
}

// collision is the picture of a lost update: the two requests, on one axis of time, for a slide and for a phone.
type collision struct {
	timeline
	Title          string
	Class          string
	Width, X, Span int
	Key            []segment
}

// lane is one request.
type lane struct {
	Buyer, Story string
	Marked       bool // one of the pair
	Segments     []segment
	Read         percent
	Seen         string
	SeenAt       percent
	SeenAnchor   string
	More         bool // it goes on behind the end of the axis

	Reads, Writes string // in words
	WroteAt       percent
}

type segment struct {
	Class, Title, Colour string
	X, Width             percent
	At                   int // in a key, in pixels
}

// steps are the segments of a lane, in a key: what they mean and where they stand.
func steps(language string) []segment {
	return []segment{
		{Class: "wait", Title: lang.Text(language, "waits for the lock"), Colour: "#dde1e5", At: 24},
		{Class: "read", Title: lang.Text(language, "reads"), Colour: "#77a9d6", At: 184},
		{Class: "think", Title: lang.Text(language, "thinks"), Colour: "#e3b04b", At: 264},
		{Class: "write", Title: lang.Text(language, "writes and commits"), Colour: "#2f6fae", At: 344},
		{Class: "release", Title: lang.Text(language, "releases the lock"), Colour: "#9aa5b0", At: 514},
	}
}

func newTimeline(name string, of *crowd.Timeline, language string) *timeline {
	if of == nil || len(of.Requests) == 0 {
		return nil
	}
	all, pair := of.Requests, of.Pair
	w := newWindow(all, pair)
	t := &timeline{Start: microseconds(w.from), End: microseconds(w.to), Pair: len(pair) > 0, Sentence: sentence(all, pair, language)}
	for i, r := range all {
		t.Lanes = append(t.Lanes, newLane(r, slices.Contains(pair, i), w, language))
	}
	if t.Pair {
		t.Collision = newCollisions(name, *t, []crowd.Request{all[pair[0]], all[pair[1]]}, language)
	}
	return t
}

func newCollisions(name string, t timeline, two []crowd.Request, language string) []collision {
	w := newWindow(two, []int{0, 1})
	t.Start, t.End, t.Lanes = microseconds(w.from), microseconds(w.to), nil
	for _, r := range two {
		l := newLane(r, true, w, language)
		if r.Instance > 0 {
			l.Buyer += lang.Text(language, ", ") + instance(r, language)
		}
		l.Reads, l.Writes = lang.Text(language, "reads %s", l.Seen), lang.Text(language, "writes %s", humanize.Comma(*r.Wrote))
		l.WroteAt = w.at(max(r.Written, r.Committed))
		t.Lanes = append(t.Lanes, l)
	}
	c := collision{timeline: t, Title: lang.Text(language, "%s: two orders, one unit subtracted", name), Key: steps(language)}
	wide, narrow := c, c
	wide.Class, wide.Width, wide.X, wide.Span = "wide", 960, 24, 912
	narrow.Class, narrow.Width, narrow.X, narrow.Span = "narrow", 360, 12, 336
	return []collision{wide, narrow}
}

// sentence is what the timeline shows, in a language.
func sentence(all []crowd.Request, pair []int, language string) string {
	if len(pair) > 0 {
		a, b := all[pair[0]], all[pair[1]]
		return lang.Text(language, "%s and %s both read %s and both wrote %s: what one of them took is not subtracted.",
			a.Buyer, b.Buyer, humanize.Comma(a.Seen), humanize.Comma(*a.Wrote))
	}
	read := map[int64]int64{}
	for _, r := range all {
		if r.Accepted && r.Wrote == nil {
			if read[r.Seen]++; read[r.Seen] > 1 {
				return lang.Text(language, "Several accepted requests read %s, but none wrote back what it computed from that: the database subtracted for each.",
					humanize.Comma(r.Seen))
			}
		}
	}
	return lang.Text(language, "Of these requests, no two that were accepted read the same stock.")
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
		Buyer: r.Buyer, Story: story(r, language), Marked: marked, Read: w.at(r.Read), Seen: humanize.Comma(r.Seen),
		SeenAt: w.at(r.Read) + 1, SeenAnchor: "start", More: max(r.Read, r.Committed, r.Released) > w.to,
	}
	if r.Instance > 0 {
		l.Story = instance(r, language) + lang.Text(language, ", ") + l.Story
	}
	if l.Read > 80 {
		l.SeenAt, l.SeenAnchor = l.Read-1, "end"
	}
	add := func(step segment, from, to int64) {
		if from < to && from < w.to && to > w.from {
			step.Title = lang.Text(language, "%s: %s", step.Title, microseconds(to-from))
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
	if r.Writing > 0 {
		add(steps[2], max(r.Read, r.LockHeld), r.Writing)
		add(steps[3], r.Writing, max(r.Written, r.Committed))
	}
	if r.LockHeld > 0 {
		add(steps[4], max(r.Read, r.Committed), r.Released)
	}
	return l
}

func instance(r crowd.Request, language string) string {
	return lang.Text(language, "instance %d", r.Instance)
}

// story is what a request did, in a few words of a language.
func story(r crowd.Request, language string) string {
	seen := humanize.Comma(r.Seen)
	switch {
	case r.Wrote != nil && r.Accepted:
		return lang.Text(language, "read %s, wrote %s", seen, humanize.Comma(*r.Wrote))
	case r.Accepted:
		return lang.Text(language, "read %s, the database subtracted", seen)
	}
	return lang.Text(language, "read %s, was refused", seen)
}

// microseconds shows a short duration.
func microseconds(us int64) string {
	if us < 1000 {
		return fmt.Sprintf("%d µs", us)
	}
	return result.Milliseconds(float64(us) / 1000)
}
