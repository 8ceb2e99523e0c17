package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/report"
)

// view is what the templates show, in words and percentages.
type view struct {
	Lead       string
	Promises   []string
	Broken     bool
	Strategies []strategy
	Facts      []fact
	Command    string
	Since      string // from when waits count
}

type strategy struct {
	report.Strategy
	Lock     string // how requests waited for it; empty if there is none
	ID       string
	Word     word
	Bar      bar
	Remarks  []string
	Answers  answers
	Curve    curve
	Timeline *timeline // nil if there is nothing to show
}

// word is a verdict for people. Its class is its colour.
type word struct {
	Class, Mark, Text string
}

type fact struct {
	Name, Value string
}

func newView(r report.Report) view {
	v := view{
		Lead:     lead(r),
		Promises: r.Promises(),
		Broken:   len(r.Broken()) > 0,
		Facts:    facts(r),
		Command:  r.Run.Command,
		Since:    since(r.Run),
	}
	var most int64 = 1
	for _, s := range r.Strategies {
		most = max(most, s.Supplied+s.Oversold, s.UnitsSold)
	}
	for i, s := range r.Strategies {
		v.Strategies = append(v.Strategies, strategy{
			Strategy: s,
			Lock:     says(s.Locks),
			ID:       "strategy-" + strconv.Itoa(i+1),
			Word:     verdict(s),
			Bar:      newBar(s, most),
			Remarks:  s.Remarks(),
			Answers:  newAnswers(s),
			Curve:    newCurve(s),
			Timeline: newTimeline(s),
		})
	}
	return v
}

func verdict(s report.Strategy) word {
	switch s.Verdict {
	case "correct":
		return word{"good", "✓", "correct"}
	case "oversold":
		return word{"bad", "✕", "oversold by " + humanize.Comma(s.Oversold)}
	case "undersold":
		return word{"poor", "−", "undersold by " + humanize.Comma(s.Undersold)}
	}
	return word{"bad", "≠", s.Verdict}
}

func lead(r report.Report) string {
	from := "from " + r.Run.Target
	switch {
	case r.Run.Target != "":
	case r.Run.Instances == 1:
		from = "from one shop instance"
	default:
		from = fmt.Sprintf("from %d shop instances", r.Run.Instances)
	}
	if r.Run.Wanted != "" {
		return r.Run.Wanted + ", " + from + "."
	}
	return fmt.Sprintf("%s buyers wanted one of %s units each, all at once, %s.",
		humanize.Comma(int64(r.Run.Buyers)), humanize.Comma(r.Run.Stock), from)
}

// since says from when waits count.
func since(run report.Run) string {
	if run.Rate > 0 || run.Seconds > 0 || run.Requests > 0 {
		return "Waits count from the moment an order was due."
	}
	return "Waits count from the moment all buyers were let go: who stood in a queue waited, too."
}

func says(l *report.Locks) string {
	if l == nil {
		return ""
	}
	return l.Says()
}

// facts are what the figures depend on. What is not known is left out.
func facts(r report.Report) []fact {
	instances := ""
	if r.Run.Instances > 0 {
		instances = strconv.Itoa(r.Run.Instances)
	}
	all := []fact{
		{"When", r.StartedAt.UTC().Format("2 January 2006, 15:04 UTC")},
		{"Buyers", humanize.Comma(int64(r.Run.Buyers))},
		{"Units for sale", humanize.Comma(r.Run.Stock)},
		{"Shop", r.Run.Target},
		{"Shop instances", instances},
		{"Think time", milliseconds(r.Run.ThinkMS) + " between reading the stock and writing it"},
		{"Database", known(r.Machine.DatabaseVersion, r.Machine.Database)},
		{"Redis", known(r.Machine.RedisVersion, r.Machine.Redis)},
		{"Machine", fmt.Sprintf("%s/%s, %d CPUs", r.Machine.OS, r.Machine.Arch, r.Machine.CPUs)},
		{"CPU", r.Machine.CPUModel},
		{"Load test", harness(r.Harness)},
		{"Go", r.Machine.Go},
		{"Commit", r.Machine.Commit},
	}
	var told []fact
	for _, f := range all {
		if f.Value != "" {
			told = append(told, f)
		}
	}
	return told
}

func harness(h *report.Harness) string {
	if h == nil {
		return ""
	}
	return h.Says()
}

// known joins what there is.
func known(parts ...string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	return strings.Join(there, "; ")
}

// milliseconds shows a duration with the digits that matter.
func milliseconds(ms float64) string {
	switch {
	case ms < 10:
		return strconv.FormatFloat(math.Round(ms*10)/10, 'f', -1, 64) + " ms"
	case ms < 10_000:
		return humanize.Comma(int64(ms+0.5)) + " ms"
	}
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// rate shows a number per second.
func rate(perSecond float64) string {
	if perSecond < 10 {
		return strconv.FormatFloat(math.Round(perSecond*10)/10, 'f', -1, 64)
	}
	return humanize.Comma(int64(perSecond + 0.5))
}

// percent is a length or a place on the page.
type percent float64

func (p percent) String() string { return strconv.FormatFloat(float64(p), 'f', 2, 64) + "%" }

func share(part, whole int64) percent {
	return percent(100 * float64(part) / float64(max(1, whole)))
}
