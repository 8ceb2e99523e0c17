package page_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/report/page"
)

// parse returns all elements of a page, in order.
func parse(t *testing.T, text []byte) []*html.Node {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var elements []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			elements = append(elements, n)
		}
	}
	return elements
}

func attribute(n *html.Node, name string) string {
	i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if i < 0 {
		return ""
	}
	return n.Attr[i].Val
}

// words returns the text below an element, with single spaces.
func words(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// reports are those that every page must stand.
func reports() map[string]report.Report {
	hostile, huge, many := example(), example(), example()
	hostile.Strategies[0].Name = `<img src="https://example.com/x.png">`
	hostile.Strategies[0].Lesson = `<script>alert("x")</script>`
	hostile.Strategies[0].Notes = []string{`"><script src=//example.com></script>`}
	hostile.Strategies[0].Verdict = `<b onclick=x>`
	hostile.Strategies[0].Timeline.Requests[0].Buyer = `"><script>`
	hostile.Strategies[0].Timeline.Pair = []int{7, -1}
	hostile.Run.Target, hostile.Run.Command = `javascript:alert(1)`, `</code><script>`
	hostile.Machine.CPUModel = `<style>*{}</style>`
	for i := range huge.Strategies {
		s := &huge.Strategies[i]
		s.Supplied, s.Orders, s.UnitsSold, s.Oversold, s.Refused = 1, math.MaxInt64, math.MaxInt64, math.MaxInt64-1, math.MaxInt64
		s.OrdersPerSecond, s.LatencyMS.Max, s.LatencyMS.P99 = 1e15, 3.6e6, 3.6e6
		s.Answers.Orders = []int64{math.MaxInt64, 1}
	}
	many.Strategies = nil
	for i := range 16 {
		s := none()
		s.Name = fmt.Sprintf("strategy-number-%d", i)
		many.Strategies = append(many.Strategies, s)
	}
	nothing := example()
	nothing.Strategies = []report.Strategy{{Name: "idle", Lesson: "Nobody came.", Verdict: "correct"}}
	return map[string]report.Report{
		"example": example(), "hostile": hostile, "huge numbers": huge, "16 strategies": many, "no orders": nothing, "empty": {},
	}
}

// doc.go: "no script, font or image from elsewhere, and its
// Content-Security-Policy forbids them."
func TestWrite_needs_nothing(t *testing.T) {
	t.Parallel()
	forbidden := []string{"script", "img", "link", "iframe", "object", "embed", "image", "use", "form", "base", "b"}
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := write(t, r)
			ids, styles, policy := map[string]bool{}, 0, ""
			for _, n := range parse(t, text) {
				if slices.Contains(forbidden, n.Data) {
					t.Errorf("element <%s>", n.Data)
				}
				if n.Data == "style" {
					styles++
				}
				if attribute(n, "http-equiv") == "Content-Security-Policy" {
					policy = attribute(n, "content")
				}
				if id := attribute(n, "id"); id != "" && ids[id] {
					t.Errorf("id %q is there twice", id)
				} else {
					ids[id] = true
				}
				for _, a := range n.Attr {
					refers := a.Key == "href" || a.Key == "src" || a.Key == "style" || strings.HasPrefix(a.Key, "on")
					if refers && (a.Key != "href" || !strings.HasPrefix(a.Val, "#")) {
						t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
					}
				}
			}
			if styles != 1 || !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || strings.Contains(policy, "unsafe") {
				t.Errorf("%d styles, policy %q, want one that allows nothing but the one style", styles, policy)
			}
			for _, broken := range []string{"NaN", "Inf", "ZgotmplZ", "<no value>", "%!"} {
				if bytes.Contains(text, []byte(broken)) {
					t.Errorf("%s in the page", broken)
				}
			}
		})
	}
}

// Each bar and line stays inside its picture, whatever the numbers.
func TestWrite_pictures(t *testing.T) {
	t.Parallel()
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, n := range parse(t, write(t, r)) {
				if n.Data == "svg" && attribute(n, "role") == "img" && attribute(n, "aria-label") == "" {
					t.Error("a picture without a name")
				}
				if n.Data != "rect" {
					continue
				}
				x, width := percentage(t, attribute(n, "x")), percentage(t, attribute(n, "width"))
				if x < 0 || width < 0 || x+width > 100.4 {
					t.Errorf("%s: x %v, width %v, want them within 100", attribute(n, "class"), x, width)
				}
			}
		})
	}
}

// percentage reads a length in percent; one in pixels, or none, is 0.
func percentage(t *testing.T, s string) float64 {
	t.Helper()
	text, relative := strings.CutSuffix(s, "%")
	if !relative {
		return 0
	}
	var n float64
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Errorf("length %q: %v", s, err)
	}
	return n
}

// The page says of each strategy what the report does.
func TestWrite_says(t *testing.T) {
	t.Parallel()
	root, err := html.Parse(bytes.NewReader(write(t, example())))
	if err != nil {
		t.Fatal(err)
	}
	got := words(root)
	for _, want := range []string{
		"1,000 buyers wanted one of 100 units each, all at once, from 3 shop instances.",
		"Promised to be correct and was: redis.",
		"✕ oversold by 331 431 sold of 100", "✓ correct 100 sold of 100", "− undersold by 40 60 sold of 100",
		"none promises nothing", "redis promises to be correct", "Read, think, write.", "A lease.", "Gives up early.",
		"Sold 431 units of 100: 331 buyers wait for an order that cannot be delivered.",
		"none 431 569 0 812 1,072 212 ms 400 ms 499 ms 530 ms",
		"redis 100 900 0 140 1,260 9.4 ms 700 ms 12.3s 13s",
		"431 orders, 812 per second at most 230 in 106 ms", "569 refusals, 1,072 per second at most 300 in 106 ms",
		"buyer-17 and buyer-18 both read 100 and both wrote 99", "▶ buyer-17 read 100, wrote 99", "buyer-3 read 0, was refused",
		"Of these requests, no two that were accepted read the same stock.", "buyer-2 read 99, the database subtracted",
		"a note & more", "buyers asked again 7 times, with the same key", "940 without a definite answer: no answer in time",
		"Database SQLite 3.50.1; SQLite, embedded", "Redis Redis 8.0.2; Redis at cache:6379", "CPU Some Processor",
		"Go go1.26", "Commit 0123abcd", "When 4 May 2026, 12:30 UTC", "Think time 2 ms", "Machine linux/amd64, 8 CPUs",
		"go run ./loadtest --strategies none,redis,slow",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}

// Requests that read the same and let the database subtract did nothing wrong.
func TestWrite_no_collision(t *testing.T) {
	t.Parallel()
	r := example()
	for i := range r.Strategies[1].Timeline.Requests {
		r.Strategies[1].Timeline.Requests[i].Seen = 100
	}
	want := "2 accepted requests read 100, but none wrote back what it reckoned from that: the database subtracted for each."
	if got := string(write(t, r)); !strings.Contains(got, want) {
		t.Errorf("want %q", want)
	}
}

// "without its frame and heading", but all else.
func TestWriteResult(t *testing.T) {
	t.Parallel()
	var part, patterns bytes.Buffer
	if err := page.WriteResult(&part, example()); err != nil {
		t.Fatal(err)
	}
	if whole := write(t, example()); !bytes.Contains(whole, part.Bytes()) {
		t.Error("the result is not a part of the page")
	}
	for _, frame := range []string{"<html", "<style", "<h1", "<main"} {
		if bytes.Contains(part.Bytes(), []byte(frame)) {
			t.Errorf("got %s in it, want no frame", frame)
		}
	}
	if err := page.WritePatterns(&patterns); err != nil || !strings.Contains(patterns.String(), `id="hatch"`) {
		t.Errorf("patterns: got %q, %v", patterns.String(), err)
	}
	if !strings.Contains(page.Style(), ".verdicts") {
		t.Error("the style is not the page's")
	}
}
