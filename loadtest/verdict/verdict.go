// Package verdict compares the two records of a race: the books of the shop, by its own audit, and the log of the buyers.
// Both are handed in. Books judges by the first alone.
//
// Units are counted from orders, never from a stock column: a lost update oversells while the column reads zero.
//
//   - Oversold: units in pending and paid orders beyond those supplied.
//   - Undersold: units in no order, as many as buyers went away without one.
//   - The buyers' side agrees if each acknowledged order exists, no two buyers were told of the same one, and there is
//     no other. Where some buyers never had an answer, there may be up to as many others; that is noted and is no
//     mistake.
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

// Judgement is the outcome of a race.
type Judgement struct {
	Oversold  int64    `json:"oversold"`
	Undersold int64    `json:"undersold"`
	Verdict   Verdict  `json:"verdict"`
	Findings  []string `json:"findings"` // what is wrong beside an oversale or undersale
	Notes     []string `json:"notes"`    // what is worth knowing and not wrong
}

// Race judges a race, in which each order wants one unit of a SKU. supplied is how many units were put up for sale. The log
// has been rechecked.
func Race(supplied int64, audit shopclient.Audit, log crowd.Log) Judgement {
	return judge(supplied, audit, toldOf(log))
}

// Books judges a SKU by the shop's books alone, where there is no log of the buyers. What is undersold and which
// acknowledged orders are missing is not known then.
func Books(audit shopclient.Audit) Judgement {
	j := Judgement{
		Oversold: max(0, audit.Books.OrderedUnits-audit.Books.Supplied),
		Findings: differences(audit),
	}
	j.Verdict = j.verdict()
	return j
}

// told is what the buyers were told.
type told struct {
	orders   int64    // acknowledged to buyers
	refused  int64    // refused as sold out
	failed   int64    // refused for another reason
	unknown  int64    // without a definite answer
	repeated []string // orders that were acknowledged twice, once for each time after the first
	lost     []string // acknowledged orders that the shop does not have, or shows otherwise
}

func toldOf(log crowd.Log) (t told) {
	seen := map[string]bool{} // by order id
	for _, r := range log.Records {
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
			t.refused++
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
func compareBooks(supplied int64, audit shopclient.Audit) (found []string) {
	b := audit.Books
	if b.Supplied != supplied {
		found = append(found, fmt.Sprintf("%d units were put up for sale, the books have %d", supplied, b.Supplied))
	}
	if b.OrderedUnits != b.Orders {
		found = append(found, fmt.Sprintf("%d orders of one unit each hold %d units", b.Orders, b.OrderedUnits))
	}
	return append(found, differences(audit)...)
}

// differences are what the audit found.
func differences(audit shopclient.Audit) []string {
	var all []string
	for _, d := range audit.Differences {
		text := d.Invariant + " " + d.Detail
		if d.OrderID != "" {
			text += " (order " + d.OrderID + ")"
		}
		all = append(all, text)
	}
	return few("books: ", all)
}

// compareOrders looks for orders that only one side knows.
func compareOrders(b shopclient.Books, t told) []string {
	found := slices.Concat(few("lost order: ", t.lost), few("order acknowledged to several buyers: ", t.repeated))
	there := t.orders - int64(len(t.lost)) - int64(len(t.repeated))
	switch extra := b.Orders - there; {
	case extra < 0:
		found = append(found, fmt.Sprintf("buyers hold %d orders, the books count %d", there, b.Orders))
	case extra > t.unknown:
		found = append(found, fmt.Sprintf("%d orders that no buyer was told of; %d buyers had no answer", extra, t.unknown))
	}
	return found
}

// few lists the first three findings of a kind.
func few(prefix string, all []string) []string {
	const most = 3
	var listed []string
	for _, one := range all[:min(most, len(all))] {
		listed = append(listed, prefix+one)
	}
	if more := len(all) - most; more > 0 {
		listed = append(listed, fmt.Sprintf("%s%d more", prefix, more))
	}
	return listed
}
