package verdict

import (
	"fmt"
	"slices"
)

// Verdict is one word on a race.
type Verdict string

const (
	// Correct means that every unit is in exactly one order or still for sale, and
	// nobody was turned away while there was one.
	Correct Verdict = "correct"
	// Oversold means that orders hold more units than there are. It covers whatever else
	// is wrong with the books, which is the same mistake seen from elsewhere.
	Oversold Verdict = "oversold"
	// Inconsistent means that it is not oversold, but the books disagree with
	// themselves or with what the buyers were told.
	Inconsistent Verdict = "inconsistent"
	// Undersold means that nothing else is wrong, but buyers went away without
	// units that were there.
	Undersold Verdict = "undersold"
)

// Books are the shop's side, from its audit after the race.
type Books struct {
	Supplied    int64
	Orders      int64 // cancelled ones too
	Units       int64 // in accepted orders, cancelled ones left out
	Oversold    int64 // as the shop reckons
	Differences []string
}

// Told is the buyers' side, for one SKU. Each order wants one unit of it.
type Told struct {
	Supplied  int64    // units that were put up for sale
	Orders    int64    // that buyers were told of
	Cancelled int64    // of those, the ones that buyers have cancelled
	Refused   int64    // of this SKU alone, and told that it is sold out
	Failed    int64    // told that there is no order, for another reason
	Unknown   int64    // orders of which buyers know nothing
	Repeated  []string // orders that were told twice, once for each time after the first
	Lost      []string // orders that a buyer was told of and that the shop does not have, or not so
	Doubled   []string // orders whose key brought something else the second time
}

// Judgement is the outcome of a race.
type Judgement struct {
	Verdict   Verdict
	Oversold  int64
	Undersold int64
	Findings  []string // what is wrong
	Notes     []string // what is worth knowing and not wrong
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

// undersold counts units that nobody has, as far as somebody went away wanting
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
		found = append(found, fmt.Sprintf("%d units were put up for sale, the books say %d", t.Supplied, b.Supplied))
	}
	if reckoned := max(0, b.Units-b.Supplied); b.Oversold != reckoned {
		found = append(found, fmt.Sprintf("the audit says %d oversold, its own figures give %d", b.Oversold, reckoned))
	}
	if kept := b.Orders - t.Cancelled; b.Units != kept {
		found = append(found, fmt.Sprintf("%d orders of one unit each hold %d units", kept, b.Units))
	}
	return append(found, some("books", b.Differences)...)
}

// compareOrders looks for orders that only one side knows.
func compareOrders(b Books, t Told) []string {
	found := slices.Concat(some("lost order", t.Lost), some("order told to several buyers", t.Repeated), some("not one order", t.Doubled))
	there := t.Orders - int64(len(t.Lost)) - int64(len(t.Repeated))
	switch extra := b.Orders - there; {
	case extra < 0:
		found = append(found, fmt.Sprintf("buyers hold %d orders, the books count %d", there, b.Orders))
	case extra > t.Unknown+int64(len(t.Doubled)):
		found = append(found, fmt.Sprintf("%d orders that no buyer was told of; %d buyers had no answer", extra, t.Unknown))
	}
	return found
}

// few is how many findings of one kind are told in full.
const few = 3

// some tells them, each with its kind if there is one.
func some(kind string, all []string) []string {
	if kind != "" {
		kind += ": "
	}
	var told []string
	for _, one := range all[:min(few, len(all))] {
		told = append(told, kind+one)
	}
	if more := len(all) - few; more > 0 {
		told = append(told, fmt.Sprintf("%s%d more", kind, more))
	}
	return told
}
