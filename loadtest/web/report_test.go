package web

import (
	"bytes"
	_ "embed" // for the example
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
)

func write(t *testing.T, r result.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteReport(&b, r, "en"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

//go:embed testdata/report.json
var reportJSON []byte

// example is a report with everything that a page can show.
func example() result.Report {
	var r result.Report
	if err := json.Unmarshal(reportJSON, &r); err != nil {
		panic(err)
	}
	return r
}

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
func reports() map[string]result.Report {
	hostile, huge, many := example(), example(), example()
	hostile.Strategies[0].Name = `<img src="https://example.com/x.png">`
	hostile.Strategies[0].Lesson = `<script>alert("x")</script>`
	hostile.Strategies[0].Notes = []string{`"><script src=//example.com></script>`}
	hostile.Strategies[0].Verdict = `<b onclick=x>`
	hostile.Strategies[0].Timeline.Requests[0].Buyer = `"><script>`
	hostile.Run.Target, hostile.Run.Command = `javascript:alert(1)`, `</code><script>`
	hostile.Machine.CPUModel = `<style>*{}</style>`
	for i := range huge.Strategies {
		s := &huge.Strategies[i]
		s.Supplied, s.Orders, s.UnitsSold, s.Oversold, s.Refused = 1, math.MaxInt64, math.MaxInt64, math.MaxInt64-1, math.MaxInt64
		s.OrdersPerSecond, s.LatencyMS.Max, s.LatencyMS.P99 = 1e15, 3.6e6, 3.6e6
	}
	many.Strategies = nil
	for i := range 16 {
		s := example().Strategies[0]
		s.Name = fmt.Sprintf("strategy-number-%d", i)
		many.Strategies = append(many.Strategies, s)
	}
	nothing := example()
	nothing.Strategies = []result.Strategy{{Strategy: shopclient.Strategy{Name: "idle", Lesson: "Nobody came."},
		Judgement: result.Judgement{Verdict: result.Correct}}}
	return map[string]result.Report{
		"example": example(), "hostile": hostile, "huge numbers": huge, "16 strategies": many, "no orders": nothing, "empty": {},
	}
}

// doc.go: "no script, font or image from elsewhere, and its Content-Security-Policy forbids them." Each bar stays
// inside its picture, whatever the numbers.
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
				if n.Data == "svg" && attribute(n, "role") == "img" && attribute(n, "aria-label") == "" {
					t.Error("a picture without a name")
				}
				x, width := percentage(t, attribute(n, "x")), percentage(t, attribute(n, "width"))
				if n.Data == "rect" && (x < 0 || width < 0 || x+width > 100.4) {
					t.Errorf("%s: x %v, width %v, want them within 100", attribute(n, "class"), x, width)
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
	r := example()
	r.NotRun = []result.NotRun{{Name: "zookeeper", Reason: "it needs a ZooKeeper"}}
	lucky := r.Strategies[0]
	lucky.Verdict, lucky.Oversold = result.Correct, 0
	r.Strategies = append(r.Strategies, lucky)
	got := words(parse(t, write(t, r))[0])
	for _, want := range []string{
		"Not run zookeeper: it needs a ZooKeeper",
		"1,000 buyers each want one of 100 units, all at once, from 3 shop instances.",
		"As expected, redis was correct.",
		"✕ oversold by 331 431 sold of 100", "✓ correct 100 sold of 100", "− undersold by 40 60 sold of 100",
		"none broken on purpose", "redis designed to be correct", "Read, think, write.", "A lease.", "Gives up early.",
		"Sold 431 units of 100: 331 of them cannot be delivered.",
		"none 431 331 0 569 0 1,885 212 408 499",
		"redis 100 0 0 900 0 1,400 9.4 708 12,345", "stock column: 88 left",
		"buyer-17 and buyer-18 both read 100 and both wrote 99", "▶ buyer-17 instance 1, read 100, wrote 99",
		"buyer-3 instance 3, read 0, was refused",
		"none: Two orders, one unit subtracted", "buyer-18, instance 2", "reads stock 100", "writes stock 99",
		"Units sold over time", "100 supplied", "none 431 sold, oversold by 331",
		"none: The stock column beside the orders", "88 left, says the stock column",
		"No two accepted requests among these read the same stock.", "buyer-2 read 99, and the database subtracted the unit",
		"a note & more", "buyers retried 7 times, with the same key", "940 without a definite answer: no answer in time",
		"Database SQLite 3.50.1; SQLite, embedded", "Redis Redis 8.0.2; Redis at cache:6379", "CPU Some Processor",
		"Go go1.26", "Commit 0123abcd", "When 4 May 2026, 12:30 UTC", "Think time 2 ms", "Machine linux/amd64, 8 CPUs",
		"go run ./loadtest --strategies none,redis,slow", "? not caught in this race", "go run ./loadtest step none",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}

// The picture for a slide is well-formed by itself: opaque, with the supply named, and each strategy with its outcome.
// Whatever the numbers, its curves are inside of it.
func TestWritePicture(t *testing.T) {
	t.Parallel()
	for name, r := range reports() {
		var b bytes.Buffer
		if err := WritePicture(&b, r, "en"); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		for d := xml.NewDecoder(&b); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, text)
			}
			start, ok := token.(xml.StartElement)
			if ok && start.Name.Local == "script" {
				t.Errorf("%s: a script in\n%s", name, text)
			}
			if ok && start.Name.Local == "polyline" {
				for _, at := range strings.Fields(start.Attr[0].Value) {
					var x, y float64
					if _, err := fmt.Sscanf(at, "%f,%f", &x, &y); err != nil || x < 0 || x > 960 || y < 0 || y > 540 {
						t.Errorf("%s: got a point at %s, want it in the picture", name, at)
					}
				}
			}
		}
		for _, want := range []string{`fill="#ffffff"`, "100 supplied", ">none<", "431 sold, oversold by 331",
			"seconds since all buyers were released"} {
			if name == "example" && !strings.Contains(text, want) {
				t.Errorf("want %s in\n%s", want, text)
			}
		}
	}
}

// The names at the ends of the curves do not overlap, also if all curves end at the same height.
func TestPicture_labels(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 9, 26} {
		var p picture
		for i := range n {
			p.Curves = append(p.Curves, curve{Name: fmt.Sprint(i), Points: []point{{0, 0}, {1, 7}}})
		}
		wide := p.draw("en")[0]
		for i, line := range wide.Lines {
			if line.Y < 50 || line.Y+20 > float64(wide.Height) || i > 0 && line.Y-wide.Lines[i-1].Y < 15 {
				t.Errorf("%d curves: got a name at %v behind one at %v", n, line.Y, wide.Lines[max(0, i-1)].Y)
			}
		}
	}
}

// The axis across ends where most curves have ended. A curve that goes on says when it ends, and stays in the picture.
func TestPicture_goes_on(t *testing.T) {
	t.Parallel()
	for slow, want := range map[float64]string{4: "", 30: ", ends at 30s"} {
		p := picture{Curves: []curve{{Points: []point{{0, 0}, {1, 7}}}, {Points: []point{{0, 0}, {2, 7}}},
			{Points: []point{{0, 0}, {1, 1}, {slow, 7}}}}}
		wide := p.draw("en")[0]
		if got := wide.Lines[0].Said + wide.Lines[1].Said + wide.Lines[2].Said; got != want {
			t.Errorf("up to %v s: got %q, want %q", slow, got, want)
		}
		if last := wide.Xs[len(wide.Xs)-1]; last.Text != map[float64]string{4: "4", 30: "2"}[slow] || last.At != wide.Right {
			t.Errorf("up to %v s: got %+v, want the last tick at the end of the axis", slow, last)
		}
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64][]float64{
		1000: {0, 200, 400, 600, 800, 1000}, 115: {0, 20, 40, 60, 80, 100, 120}, 0.53: {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, 7: {0, 2, 4, 6, 8},
	} {
		got := ticks(most)
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Errorf("%v: got %v, want %v", most, got, want)
		}
	}
}
