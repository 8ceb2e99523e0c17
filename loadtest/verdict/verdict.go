// Package verdict compares the two records of a race: the books of the shop and what the buyers were told. It asks
// no server; both are handed in. Books judges by the first alone.
//
// Units are counted from orders, never from a stock column: a lost update oversells while the column reads zero.
//
//   - Oversold: units in pending and paid orders beyond those supplied.
//   - Undersold: units in no order, as many as buyers went away without one. A refused cart counts only if it has one
//     SKU: of several, it is not known which one was missing.
//   - The buyers' side agrees if each acknowledged order exists, no two buyers were told of the same one, and there is
//     no other. Where some buyers never had an answer, there may be up to as many others; that is noted and is no
//     mistake.
//   - Of several SKUs, each is judged by itself. What is oversold and undersold is added up, never one against the
//     other.
package verdict

import (
	"fmt"
	"slices"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/shopclient"
)

// Verdict is one word on a race.
type Verdict string

const (
	// Correct means that every unit is in exactly one order or still for sale, and no buyer was turned away while there
	// was one.
	Correct Verdict = "correct"
	// Undersold means that nothing else is wrong, but buyers went away without units that were there.
	Undersold Verdict = "undersold"
	// Inconsistent means that it is not oversold, but the books disagree with themselves or with what the buyers were
	// told.
	Inconsistent Verdict = "inconsistent"
	// Oversold means that orders hold more units than there are. It covers whatever else is wrong with the books, which
	// is the same mistake seen from elsewhere.
	Oversold Verdict = "oversold"
)

// compare orders verdicts, the worst last.
func (v Verdict) compare(other Verdict) int {
	bestFirst := []Verdict{Correct, Undersold, Inconsistent, Oversold}
	return slices.Index(bestFirst, v) - slices.Index(bestFirst, other)
}

// Judgement is the outcome of a race.
type Judgement struct {
	Oversold  int64    `json:"oversold"`
	Undersold int64    `json:"undersold"`
	Verdict   Verdict  `json:"verdict"`
	Findings  []string `json:"findings"` // what is wrong beside an oversale or undersale
	Notes     []string `json:"notes"`    // what is worth knowing and not wrong
}

// SKU is the judgement of one SKU of a race.
type SKU struct {
	SKU       string `json:"sku"`
	Supplied  int64  `json:"supplied"`
	Orders    int64  `json:"orders"`
	UnitsSold int64  `json:"units_sold"`
	Refused   int64  `json:"refused"` // orders with a line of this SKU and no other
	Judgement
}

// Race judges each SKU of a race. supplied is the number of units of each. The log has been rechecked.
func Race(supplied int64, books []shopclient.Audit, log crowd.Log) []SKU {
	var judged []SKU
	for _, audit := range books {
		b, t := audit.Books, toldOf(audit.Books.SKU, log)
		judged = append(judged, SKU{b.SKU, supplied, b.Orders, b.OrderedUnits, t.refused, judge(supplied, audit, t)})
	}
	return judged
}

// Books judges a SKU by the shop's books alone, where there is no log of the buyers. What is undersold and which
// acknowledged orders are missing is not known then.
func Books(audit shopclient.Audit) Judgement {
	j := Judgement{
		Oversold: max(0, audit.Books.OrderedUnits-audit.Books.Supplied),
		Findings: prefixed("books: ", differences(audit)),
	}
	j.Verdict = j.verdict()
	return j
}

// Sum is the judgement of a race from those of its SKUs: what was oversold and undersold is added up, and the verdict
// is the worst.
func Sum(skus []SKU) Judgement {
	if len(skus) == 1 {
		return skus[0].Judgement
	}
	j := Judgement{Verdict: Correct}
	for _, sku := range skus {
		j.Oversold += sku.Oversold
		j.Undersold += sku.Undersold
		if sku.Verdict.compare(j.Verdict) > 0 {
			j.Verdict = sku.Verdict
		}
		j.Findings = append(j.Findings, prefixed(sku.SKU+": ", sku.Findings)...)
		j.Notes = append(j.Notes, prefixed(sku.SKU+": ", sku.Notes)...)
	}
	j.Findings, j.Notes = prefixed("", j.Findings), prefixed("", j.Notes)
	return j
}

// told is the buyers' side, for one SKU. Each order wants one unit of it.
type told struct {
	orders   int64    // acknowledged to buyers
	refused  int64    // refused as sold out: orders of this SKU and no other
	failed   int64    // refused for another reason
	unknown  int64    // without a definite answer
	repeated []string // orders that were acknowledged twice, once for each time after the first
	lost     []string // acknowledged orders that the shop does not have, or shows otherwise
}

func toldOf(sku string, log crowd.Log) (t told) {
	seen := map[string]bool{} // by order id
	for _, r := range log.Records {
		if !slices.ContainsFunc(r.Lines, func(l shopclient.Line) bool { return l.SKU == sku }) {
			continue
		}
		switch r.Outcome {
		case crowd.Ordered:
			t.orders++
			if r.Lost != "" {
				t.lost = append(t.lost, fmt.Sprintf("%s of %s: %s", r.OrderID, r.Buyer, r.Lost))
			}
			if seen[r.OrderID] {
				t.repeated = append(t.repeated, r.OrderID)
			}
			seen[r.OrderID] = true
		case crowd.Refused:
			if len(r.Lines) == 1 { // of a cart, it is not known which SKU was missing
				t.refused++
			}
		case crowd.Failed:
			t.failed++
		case crowd.Unknown:
			t.unknown++
		}
	}
	return t
}

// judge compares both sides.
func judge(supplied int64, audit shopclient.Audit, t told) Judgement {
	j := Judgement{
		Oversold:  max(0, audit.Books.OrderedUnits-supplied),
		Undersold: undersold(supplied, audit.Books, t),
		Findings:  append(compareBooks(supplied, audit), compareOrders(audit.Books, t)...),
	}
	if extra := audit.Books.Orders - t.orders; extra > 0 && extra <= t.unknown {
		j.Notes = append(j.Notes, fmt.Sprintf("%d of the %d buyers who never had an answer have an order", extra, t.unknown))
	}
	j.Verdict = j.verdict()
	return j
}

func (j Judgement) verdict() Verdict {
	switch {
	case j.Oversold > 0:
		return Oversold
	case len(j.Findings) > 0:
		return Inconsistent
	case j.Undersold > 0:
		return Undersold
	}
	return Correct
}

// undersold counts units that are in no order, as far as buyers went away wanting them. Buyers who know nothing and
// have no order went away as well.
func undersold(supplied int64, b shopclient.Books, t told) int64 {
	unsold := max(0, supplied-b.OrderedUnits)
	foundLater := min(max(0, b.Orders-t.orders), t.unknown)
	return min(unsold, t.refused+t.failed+t.unknown-foundLater)
}

// compareBooks looks for what is wrong within the shop's books.
func compareBooks(supplied int64, audit shopclient.Audit) []string {
	var found []string
	b := audit.Books
	if b.Supplied != supplied {
		found = append(found, fmt.Sprintf("%d units were put up for sale, the books have %d", supplied, b.Supplied))
	}
	if b.OrderedUnits != b.Orders {
		found = append(found, fmt.Sprintf("%d orders of one unit each hold %d units", b.Orders, b.OrderedUnits))
	}
	return append(found, prefixed("books: ", differences(audit))...)
}

func differences(audit shopclient.Audit) (found []string) {
	for _, d := range audit.Differences {
		text := d.Invariant + " " + d.Detail
		if d.OrderID != "" {
			text += " (order " + d.OrderID + ")"
		}
		found = append(found, text)
	}
	return found
}

// compareOrders looks for orders that only one side knows.
func compareOrders(b shopclient.Books, t told) []string {
	found := slices.Concat(prefixed("lost order: ", t.lost), prefixed("order acknowledged to several buyers: ", t.repeated))
	there := t.orders - int64(len(t.lost)) - int64(len(t.repeated))
	switch extra := b.Orders - there; {
	case extra < 0:
		found = append(found, fmt.Sprintf("buyers hold %d orders, the books count %d", there, b.Orders))
	case extra > t.unknown:
		found = append(found, fmt.Sprintf("%d orders that no buyer was told of; %d buyers had no answer", extra, t.unknown))
	}
	return found
}

// few is how many findings of one kind are listed in full.
const few = 3

// prefixed lists a few of them, each with its prefix.
func prefixed(prefix string, all []string) []string {
	var listed []string
	for _, one := range all[:min(few, len(all))] {
		listed = append(listed, prefix+one)
	}
	if more := len(all) - few; more > 0 {
		listed = append(listed, fmt.Sprintf("%s%d more", prefix, more))
	}
	return listed
}
