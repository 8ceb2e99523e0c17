package buyers

import (
	"slices"
	"time"

	"example.com/shop/loadtest/shopclient"
)

// Outcome is what a buyer knows of an order in the end.
type Outcome int

const (
	// Unknown means that no try brought a definite answer: there may be an order.
	Unknown Outcome = iota
	// Ordered means that the shop told the id of an order.
	Ordered
	// Refused means that the shop said it is sold out.
	Refused
	// Failed means that the shop rejected the request for another reason: there is
	// no order.
	Failed
)

// Record is what became of one order.
type Record struct {
	Buyer    string
	Lines    []shopclient.Line // that the buyer wants
	Outcome  Outcome
	OrderID  string        // of an Ordered
	Ended    time.Duration // from the common start to the last answer
	Latency  time.Duration // the same, from the moment at which the order was due
	Tries    int
	Replayed bool   // the answer repeats that of an earlier try
	Reason   string // of a Failed or Unknown: what the last try brought

	// What the buyer did with an Ordered afterwards, and what came of it.
	Again         Again
	AgainBrought  string // other than the same order
	Cancel        Cancel
	CancelBrought string // other than the end of the order
}

// Log is what became of all orders.
type Log struct {
	Took    time.Duration // from the common start to the last answer
	Records []Record
	Unsent  int64 // orders that were due while all buyers waited for answers
}

// Count returns how many orders had this outcome.
func (l Log) Count(o Outcome) int64 {
	return l.count(func(r Record) bool { return r.Outcome == o })
}

func (l Log) count(is func(Record) bool) int64 {
	var n int64
	for _, r := range l.Records {
		if is(r) {
			n++
		}
	}
	return n
}

// Retries returns how often a buyer asked again.
func (l Log) Retries() int64 {
	var n int64
	for _, r := range l.Records {
		n += int64(max(0, r.Tries-1))
	}
	return n
}

// Reason is why buyers had no definite answer, and how many.
type Reason struct {
	Text   string
	Buyers int
}

// Reasons returns why buyers failed or know nothing, the most frequent first.
func (l Log) Reasons() []Reason {
	at := make(map[string]int)
	var found []Reason
	for _, r := range l.Records {
		if r.Outcome != Failed && r.Outcome != Unknown {
			continue
		}
		i, seen := at[r.Reason]
		if !seen {
			i = len(found)
			at[r.Reason] = i
			found = append(found, Reason{Text: r.Reason})
		}
		found[i].Buyers++
	}
	slices.SortStableFunc(found, func(a, b Reason) int { return b.Buyers - a.Buyers })
	return found
}
