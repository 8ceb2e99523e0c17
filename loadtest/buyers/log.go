package buyers

import (
	"slices"
	"time"
)

// Outcome is what a buyer knows in the end.
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

// Record is what became of one buyer.
type Record struct {
	Buyer    string
	Outcome  Outcome
	OrderID  string        // of an Ordered
	Latency  time.Duration // from the common start to the last answer
	Tries    int
	Replayed bool   // the answer repeats that of an earlier try
	Reason   string // of a Failed or Unknown: what the last try brought
}

// Log is what became of all buyers.
type Log struct {
	Took    time.Duration // from the common start to the last answer
	Records []Record
}

// Count returns how many buyers had this outcome.
func (l Log) Count(o Outcome) int64 {
	var n int64
	for _, r := range l.Records {
		if r.Outcome == o {
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

// Repeated returns the ids of orders that more than one buyer was told of, once
// for each buyer after the first.
func (l Log) Repeated() []string {
	times := make(map[string]int, len(l.Records))
	var ids []string
	for _, r := range l.Records {
		if r.Outcome != Ordered {
			continue
		}
		if times[r.OrderID]++; times[r.OrderID] > 1 {
			ids = append(ids, r.OrderID)
		}
	}
	slices.Sort(ids)
	return ids
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
