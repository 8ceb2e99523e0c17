// Package verdict compares the two records of a race: the books of the shop and what
// the buyers were told. It asks nobody; both are handed in.
//
// Units are counted from orders, never from a stock column: a lost update oversells
// while the column reads zero.
//
//   - Oversold: units in accepted orders beyond those supplied.
//   - Undersold: units in no order, as far as buyers went away without one. Units
//     of cancelled orders are not counted, and of refused carts only those of one
//     SKU are: of another, it is not known which SKU was missing.
//   - The buyers' side agrees if each acknowledged order exists, no two buyers were
//     told of the same one, and there is no other. Where some buyers never had an
//     answer, there may be up to as many others; that is noted and is no mistake. An
//     order that was sent twice with one key is one.
//   - Of several SKUs, each is judged by itself. What is oversold and undersold is
//     added up, never one against the other.
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
	// Correct means that every unit is in exactly one order or still for sale, and
	// nobody was turned away while there was one.
	Correct Verdict = "correct"
	// Undersold means that nothing else is wrong, but buyers went away without
	// units that were there.
	Undersold Verdict = "undersold"
	// Inconsistent means that it is not oversold, but the books disagree with
	// themselves or with what the buyers were told.
	Inconsistent Verdict = "inconsistent"
	// Oversold means that orders hold more units than there are. It covers whatever else
	// is wrong with the books, which is the same mistake seen from elsewhere.
	Oversold Verdict = "oversold"
)

// All returns the verdicts, the best first.
func All() []Verdict { return []Verdict{Correct, Undersold, Inconsistent, Oversold} }

// WorseThan compares two verdicts.
func (v Verdict) WorseThan(other Verdict) bool {
	return slices.Index(All(), v) > slices.Index(All(), other)
}

// Books are the shop's side, from its audit after the race.
type Books struct {
	Supplied    int64
	Orders      int64 // cancelled ones too
	Units       int64 // in accepted orders, cancelled ones left out
	Oversold    int64 // by the shop's own count
	Differences []string
}

// Told is the buyers' side, for one SKU. Each order wants one unit of it.
type Told struct {
	Supplied  int64    // units that were put up for sale
	Orders    int64    // acknowledged to buyers
	Cancelled int64    // of those, the ones that buyers have cancelled
	Refused   int64    // of this SKU alone, and told that it is sold out
	Failed    int64    // told that there is no order, for another reason
	Unknown   int64    // orders of which buyers know nothing
	Repeated  []string // orders that were acknowledged twice, once for each time after the first
	Lost      []string // acknowledged orders that the shop does not have, or not so
	Doubled   []string // orders whose key had another answer the second time
}

// Judgement is the outcome of a race.
type Judgement struct {
	Oversold  int64    `json:"oversold"`
	Undersold int64    `json:"undersold"`
	Verdict   Verdict  `json:"verdict"`
	Findings  []string `json:"findings"` // what is wrong beside an oversale or undersale
	Notes     []string `json:"notes"`    // what is worth knowing and not wrong
}

// Judge compares both sides.
func Judge(b Books, t Told) Judgement {
	j := Judgement{
		Oversold:  max(0, b.Units-t.Supplied),
		Undersold: undersold(b, t),
	}
	j.Findings = append(compareBooks(b, t), compareOrders(b, t)...)
	if extra := b.Orders - t.Orders; extra > 0 && extra <= t.Unknown {
		j.Notes = append(j.Notes, fmt.Sprintf(
			"%d of the %d buyers who never had an answer have an order", extra, t.Unknown))
	}
	switch {
	case j.Oversold > 0:
		j.Verdict = Oversold
	case len(j.Findings) > 0:
		j.Verdict = Inconsistent
	case j.Undersold > 0:
		j.Verdict = Undersold
	default:
		j.Verdict = Correct
	}
	return j
}

// undersold counts units that are in no order, as far as buyers went away wanting
// them. Buyers who know nothing and have no order went away as well. Units of
// cancelled orders do not count: they may have come back after that.
func undersold(b Books, t Told) int64 {
	unsold := max(0, t.Supplied-b.Units-t.Cancelled)
	unexplained := min(max(0, b.Orders-t.Orders), t.Unknown)
	turnedAway := t.Refused + t.Failed + t.Unknown - unexplained
	return min(unsold, turnedAway)
}

// compareBooks looks for what is wrong within the shop's books.
func compareBooks(b Books, t Told) []string {
	var found []string
	if b.Supplied != t.Supplied {
		found = append(found, fmt.Sprintf("%d units were put up for sale, the books have %d", t.Supplied, b.Supplied))
	}
	if counted := max(0, b.Units-b.Supplied); b.Oversold != counted {
		found = append(found, fmt.Sprintf("the audit has %d oversold, its own figures give %d", b.Oversold, counted))
	}
	if kept := b.Orders - t.Cancelled; b.Units != kept {
		found = append(found, fmt.Sprintf("%d orders of one unit each hold %d units", kept, b.Units))
	}
	return append(found, some("books: ", b.Differences)...)
}

// compareOrders looks for orders that only one side knows.
func compareOrders(b Books, t Told) []string {
	found := slices.Concat(some("lost order: ", t.Lost), some("order acknowledged to several buyers: ", t.Repeated), some("not one order: ", t.Doubled))
	there := t.Orders - int64(len(t.Lost)) - int64(len(t.Repeated))
	switch extra := b.Orders - there; {
	case extra < 0:
		found = append(found, fmt.Sprintf("buyers hold %d orders, the books count %d", there, b.Orders))
	case extra > t.Unknown+int64(len(t.Doubled)):
		found = append(found, fmt.Sprintf("%d orders that no buyer was told of; %d buyers had no answer", extra, t.Unknown))
	}
	return found
}

// few is how many findings of one kind are listed in full.
const few = 3

// some lists them, each with its prefix.
func some(prefix string, all []string) []string {
	var listed []string
	for _, one := range all[:min(few, len(all))] {
		listed = append(listed, prefix+one)
	}
	if more := len(all) - few; more > 0 {
		listed = append(listed, fmt.Sprintf("%s%d more", prefix, more))
	}
	return listed
}

// SKU is the judgement of one SKU of a race.
type SKU struct {
	SKU       string `json:"sku"`
	Supplied  int64  `json:"supplied"`
	Orders    int64  `json:"orders"`
	UnitsSold int64  `json:"units_sold"`
	Refused   int64  `json:"refused"` // orders of this SKU alone
	Judgement
}

// Race judges each SKU of a race, of which so many units each were supplied.
func Race(supplied int64, books []shopclient.Audit, log crowd.Log, lost []crowd.Lost) []SKU {
	var skus []string
	for _, audit := range books {
		skus = append(skus, audit.Books.SKU)
	}
	var judged []SKU
	for i, told := range sides(skus, supplied, log, lost) {
		b := books[i].Books
		judged = append(judged, SKU{b.SKU, supplied, b.Orders, b.OrderedUnits, told.Refused, Judge(audited(books[i]), told)})
	}
	return judged
}

// Sum is the judgement of a race from those of its SKUs: what was oversold and
// undersold is added up, and the verdict is the worst.
func Sum(skus []SKU) Judgement {
	if len(skus) == 1 {
		return skus[0].Judgement
	}
	j := Judgement{Verdict: Correct}
	for _, sku := range skus {
		j.Oversold += sku.Oversold
		j.Undersold += sku.Undersold
		if sku.Verdict.WorseThan(j.Verdict) {
			j.Verdict = sku.Verdict
		}
		for _, finding := range sku.Findings {
			j.Findings = append(j.Findings, sku.SKU+": "+finding)
		}
		for _, note := range sku.Notes {
			j.Notes = append(j.Notes, sku.SKU+": "+note)
		}
	}
	j.Findings, j.Notes = some("", j.Findings), some("", j.Notes)
	return j
}

// audited is the shop's side.
func audited(a shopclient.Audit) Books {
	books := Books{Supplied: a.Books.Supplied, Orders: a.Books.Orders, Units: a.Books.OrderedUnits, Oversold: a.Books.Oversold}
	for _, d := range a.Differences {
		text := d.Invariant + " " + d.Detail
		if d.OrderID != "" {
			text += " (order " + d.OrderID + ")"
		}
		books.Differences = append(books.Differences, text)
	}
	if !a.OK && len(a.Differences) == 0 {
		books.Differences = []string{"the audit failed, but names no difference"}
	}
	return books
}

// sides are the buyers' side, for each SKU.
func sides(skus []string, supplied int64, log crowd.Log, lost []crowd.Lost) []Told {
	sides := make([]Told, len(skus))
	bySKU := make(map[string]*Told, len(skus))
	for i, sku := range skus {
		sides[i].Supplied = supplied
		bySKU[sku] = &sides[i]
	}
	why := map[string]string{} // by order id
	for _, l := range lost {
		why[l.OrderID] = fmt.Sprintf("%s of %s: %s", l.OrderID, l.Buyer, l.Why)
	}
	seen := make(map[string]bool, len(log.Records))
	for _, r := range log.Records {
		for _, line := range r.Lines {
			bySKU[line.SKU].add(r, why[r.OrderID], seen[r.OrderID])
		}
		if r.Outcome == crowd.Ordered {
			seen[r.OrderID] = true
		}
	}
	for i := range sides {
		slices.Sort(sides[i].Repeated)
	}
	return sides
}

// add counts an order. lost is why the shop does not have it, if so; seen means that
// it was acknowledged before.
func (t *Told) add(r crowd.Record, lost string, seen bool) {
	switch r.Outcome {
	case crowd.Ordered:
		t.Orders++
		if r.Cancel == crowd.Cancelled && lost == "" {
			t.Cancelled++
		}
		if lost != "" {
			t.Lost = append(t.Lost, lost)
		}
		if seen {
			t.Repeated = append(t.Repeated, r.OrderID)
		}
		if r.Repeat == crowd.OtherAnswer {
			t.Doubled = append(t.Doubled, r.Doubled())
		}
	case crowd.Refused:
		if len(r.Lines) == 1 { // of a cart, it is not known which SKU was missing
			t.Refused++
		}
	case crowd.Failed:
		t.Failed++
	case crowd.Unknown:
		t.Unknown++
	}
}
