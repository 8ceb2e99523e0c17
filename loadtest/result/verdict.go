package result

import (
	"fmt"
	"slices"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/shopclient"
)

// Verdict is one word on a race.
type Verdict string

// Verdicts.
const (
	Correct      Verdict = "correct"      // each unit is in one order or for sale; no buyer was turned away while there was one
	Undersold    Verdict = "undersold"    // nothing else is wrong, but buyers went away without units that were there
	Inconsistent Verdict = "inconsistent" // not oversold, but the books disagree with themselves or with the buyers' answers
	Oversold     Verdict = "oversold"     // orders hold more units than there are, which covers whatever else is wrong
)

// Judgement is the outcome of a race.
type Judgement struct {
	Oversold  int64    `json:"oversold"`
	Undersold int64    `json:"undersold"`
	Verdict   Verdict  `json:"verdict"`
	Findings  []string `json:"findings"` // what is wrong beside an oversale or undersale
	Notes     []string `json:"notes"`    // what is worth knowing and not wrong
}

// Judge compares the two records of a race in which each order wants one unit of a SKU: the books of the shop, by its
// own audit, and the log of the buyers, which has been rechecked. supplied is how many units were put up for sale.
//
// Units are counted from orders, never from a stock column: a lost update oversells while the column reads zero.
//
//   - Oversold: units in pending and paid orders beyond those supplied.
//   - Undersold: units in no order, as many as buyers went away without one.
//   - The buyers' side agrees if each acknowledged order exists, no two buyers were told of the same one, and there is
//     no other. Where some buyers never had an answer, there may be up to as many others; that is noted and is no
//     mistake.
func Judge(supplied int64, audit shopclient.Audit, log crowd.Log) Judgement {
	told := map[crowd.Outcome]int64{} // what the buyers were told
	for _, r := range log.Records {
		told[r.Outcome]++
	}
	// Orders of buyers who never had an answer. The others of these buyers went away without a unit.
	b, unknown := audit.Books, told[crowd.Unknown]
	found := max(0, b.Orders-told[crowd.Ordered])
	away := told[crowd.Refused] + told[crowd.Failed] + unknown - min(found, unknown)
	j := Judgement{
		Oversold:  max(0, b.OrderedUnits-supplied),
		Undersold: min(max(0, supplied-b.OrderedUnits), away),
		Findings:  append(compareBooks(supplied, audit), compareOrders(b.Orders, unknown, log)...),
	}
	if found > 0 && found <= unknown {
		j.Notes = append(j.Notes, fmt.Sprintf("%d of the %d buyers who never had an answer have an order", found, unknown))
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

// compareBooks looks for what is wrong within the shop's books.
func compareBooks(supplied int64, audit shopclient.Audit) (found []string) {
	b := audit.Books
	if b.Supplied != supplied {
		found = append(found, fmt.Sprintf("%d units were put up for sale, the books have %d", supplied, b.Supplied))
	}
	if b.OrderedUnits != b.Orders {
		found = append(found, fmt.Sprintf("%d orders of one unit each hold %d units", b.Orders, b.OrderedUnits))
	}
	var differences []string
	for _, d := range audit.Differences {
		text := d.Invariant + " " + d.Detail
		if d.OrderID != "" {
			text += " (order " + d.OrderID + ")"
		}
		differences = append(differences, text)
	}
	return append(found, few("books: ", differences)...)
}

// compareOrders looks for orders that only one side knows. Of the orders in the books, unknown may be
// of buyers who had no answer.
func compareOrders(orders, unknown int64, log crowd.Log) []string {
	var lost, repeated []string
	seen := map[string]bool{} // by order id
	there := int64(0)
	for _, r := range log.Records {
		switch {
		case r.Outcome != crowd.Ordered:
			continue
		case seen[r.OrderID]:
			repeated = append(repeated, r.OrderID)
		case r.Lost != "":
			lost = append(lost, fmt.Sprintf("%s of %s: %s", r.OrderID, r.Buyer, r.Lost))
		default:
			there++
		}
		seen[r.OrderID] = true
	}
	found := slices.Concat(few("lost order: ", lost), few("order acknowledged to several buyers: ", repeated))
	switch extra := orders - there; {
	case extra < 0:
		found = append(found, fmt.Sprintf("buyers hold %d orders, the books count %d", there, orders))
	case extra > unknown:
		found = append(found, fmt.Sprintf("%d orders that no buyer was told of; %d buyers had no answer", extra, unknown))
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
