package designs

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/result"
)

// answers are receipts of one SKU, a millisecond after another, each asked for just before.
func answers(all ...string) (receipts []receipt) {
	at := time.Unix(1000, 0)
	for i, a := range all {
		at = at.Add(time.Millisecond)
		began := at.Add(-time.Microsecond)
		receipts = append(receipts, receipt{answer: a, order: strconv.Itoa(i + 1), began: began, answered: at})
	}
	return receipts
}

// The verdict, from receipts and rows alone. The fault is before the second receipt.
func TestJudge(t *testing.T) {
	t.Parallel()
	ten := slices.Repeat([]string{sold}, 10)
	for _, c := range []struct {
		what     string
		receipts []receipt
		rows     string // orders in the database
		left     int    // buyers who were turned away
		want     string
	}{
		{"each unit is in an acknowledged order", answers(append(ten, refused)...), "1 2 3 4 5 6 7 8 9 10",
			saleBuyers, unharmed},
		{"a buyer was not told of an order", answers(append(ten[:9:9], refused)...), "1 2 3 4 5 6 7 8 9 untold",
			saleBuyers, unharmed},
		{"an order has no row", answers(ten...), "1 2 3 4 5 6 7 8 9", 0, "lost"},
		{"more orders than units, and not all have rows", answers(append(ten, sold)...), "1 2 3 4 5 6 7 8 9 10",
			0, "lost, oversold"},
		{"more orders than units", answers(append(ten, sold, refused)...), "1 2 3 4 5 6 7 8 9 10 11",
			saleBuyers, "oversold"},
		{"units are left", answers(append(ten[:8:8], refused)...), "1 2 3 4 5 6 7 8", saleBuyers, "undersold"},
		{"a buyer was turned away too early", answers(append([]string{sold, refused}, ten[:9]...)...),
			"1 3 4 5 6 7 8 9 10 11", saleBuyers, "undersold"},
		{"no answer after the fault", answers(sold), "1", 0, "stands still"},
		{"it still sells when the time is over", answers(sold, sold), "1 2", 0, unharmed},
	} {
		rows := map[string]int64{}
		for _, order := range strings.Fields(c.rows) {
			rows[order] = 1
		}
		broken := time.Unix(1000, 0).Add(1500 * time.Microsecond)
		sale := &trial{supply: 10, receipts: c.receipts, left: c.left, broken: broken, healed: broken}
		if o := sale.judge(rows); o.Verdict != c.want {
			t.Errorf("%s: got %q, want %q: %+v", c.what, o.Verdict, c.want, o)
		}
	}
}

// aReport has a design with a mark of each kind, and one without faults.
func aReport() Report {
	r := Report{Version: 1, Designs: []Row{
		{Name: "redis-stream-early", Wrong: true, Load: map[string]float64{hot: 12_345}},
		{Name: "row-first", Load: map[string]float64{hot: 3}},
	}}
	for _, f := range allFaults() {
		o := Outcome{Fault: f.name, Verdict: "lost, oversold, undersold", Operator: "count"}
		r.Designs[0].Faults = append(r.Designs[0].Faults, o)
	}
	return r
}

// Nothing in the picture overlaps, where a character takes 9 pixels and a mark 16, and all of it is within the
// background.
func TestReport_picture(t *testing.T) {
	t.Parallel()
	d := aReport().draw()
	type box struct{ left, right, y int }
	boxes := []box{}
	for _, l := range d.Rows {
		boxes = append(boxes, box{24, 24 + 9*len(l.Name), l.Middle}, box{barX, barX + l.Bar, l.Middle},
			box{l.RateX, l.RateX + 9*len(l.Rate), l.Middle})
		for _, m := range l.Marks {
			boxes = append(boxes, box{m.X - 8, m.X + 8, m.Y})
		}
	}
	for _, c := range d.Faults {
		for i, name := range c.Name {
			boxes = append(boxes, box{c.X, c.X + 9*len(name), i - 100})
		}
	}
	for _, m := range d.Legend {
		boxes = append(boxes, box{m.X - 8, m.TextX + 8*len(m.Text), m.Y})
	}
	for i, a := range boxes {
		if a.right > d.Width || a.y > d.Height {
			t.Errorf("%+v is outside of %d x %d", a, d.Width, d.Height)
		}
		for _, b := range boxes[:i] {
			if a.y == b.y && a.left < b.right && b.left < a.right {
				t.Errorf("%+v overlaps %+v", a, b)
			}
		}
	}
}

// The picture is well-formed XML, and the JSON has the names that programs read.
func TestReport_files(t *testing.T) {
	t.Parallel()
	var picture, text bytes.Buffer
	testserver.Must(t, errors.Join(aReport().writeSVG(&picture), result.JSON(aReport())(&text)))
	for decoder := xml.NewDecoder(&picture); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	var report struct {
		Designs []struct {
			Load   map[string]float64
			Faults []map[string]any
		}
	}
	testserver.Must(t, json.Unmarshal(text.Bytes(), &report))
	if first := report.Designs[0]; first.Load["orders_per_second_1_sku_64_buyers"] != 12_345 || len(first.Faults) != 4 {
		t.Errorf("got %+v", first)
	}
	for _, name := range []string{
		"fault", "supplied_units", "acknowledged_orders", "lost_orders", "oversold_units", "undersold_units",
		"left_units", "untold_orders", "sells_again_seconds", "stands_still", "verdict", "operator_does",
	} {
		if _, ok := report.Designs[0].Faults[0][name]; !ok {
			t.Errorf("the JSON of a fault has no %q", name)
		}
	}
	if faults := aReport().faults(); !strings.Contains(faults, "redis-stream-early, failover: count.\n") {
		t.Errorf("want the task of the operator in\n%s", faults)
	}
}

// A right design that was harmed is not as it is known to be, nor is a wrong one that was not. A design that met no
// fault is not judged.
func TestReport_unlike(t *testing.T) {
	t.Parallel()
	r := Report{Designs: []Row{
		{Name: "right", Verdict: unharmed}, {Name: "harmed", Verdict: "lost"},
		{Name: "wrong", Wrong: true, Verdict: "lost"},
		{Name: "not caught", Wrong: true, Verdict: unharmed}, {Name: "not broken", Wrong: true},
	}}
	if got := r.unlike(); !slices.Equal(got, []string{"harmed", "not caught"}) {
		t.Errorf("got %q", got)
	}
}
