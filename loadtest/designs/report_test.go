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
		receipts = append(receipts, receipt{Answer: a, Order: strconv.Itoa(i + 1), Asked: began, Answered: at})
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
		left     int64  // buyers who were turned away
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
		broken := time.Unix(1000, 0).Add(1500 * time.Microsecond)
		sale := &sale{supply: 10, receipts: c.receipts, broken: broken, healed: broken}
		sale.left.Store(c.left)
		if o := sale.judge(strings.Fields(c.rows)); o.Verdict != c.want {
			t.Errorf("%s: got %q, want %q: %+v", c.what, o.Verdict, c.want, o)
		}
	}
}

// aReport has a design with a fault of each kind, and one without faults.
func aReport() Report {
	r := Report{Version: 1, Designs: []*Row{
		{Design: Design{Name: "redis-stream-early", Wrong: true}, Load: map[string]float64{hot: 12_345}},
		{Design: Design{Name: "row-first"}, Load: map[string]float64{hot: 3}},
	}}
	for _, f := range allFaults() {
		o := Outcome{Fault: f.name, Verdict: "lost, oversold, undersold", Operator: "count"}
		r.Designs[0].Faults = append(r.Designs[0].Faults, o)
	}
	return r
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
		"left_units", "sells_again_seconds", "stands_still", "verdict", "operator_does",
	} {
		if _, ok := report.Designs[0].Faults[0][name]; !ok {
			t.Errorf("the JSON of a fault has no %q", name)
		}
	}
	var tables strings.Builder
	testserver.Must(t, aReport().write(&tables))
	if !strings.Contains(tables.String(), "redis-stream-early, failover: an operator has to count.\n") {
		t.Errorf("want the task of the operator in\n%s", &tables)
	}
}

// A right design that was harmed is not as it is known to be, nor is a wrong design that was not harmed. A design that
// met no fault is not judged.
func TestReport_asKnown(t *testing.T) {
	t.Parallel()
	right, wrong := Design{}, Design{Wrong: true}
	r := Report{Designs: []*Row{
		{Design: right, Verdict: unharmed}, {Design: right, Verdict: "lost"},
		{Design: wrong, Verdict: "lost"}, {Design: wrong, Verdict: unharmed}, {Design: wrong},
	}}
	for i, one := range r.Designs {
		one.Name = []string{"right", "harmed", "wrong", "not caught", "not broken"}[i]
	}
	want := "harmed is not as it is known to be: its verdict is lost\nnot caught is not as it is known to be: its verdict is nothing"
	if err := r.asKnown(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
