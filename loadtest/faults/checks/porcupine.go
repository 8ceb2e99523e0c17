package checks

import (
	"time"

	"github.com/anishathalye/porcupine"

	"example.com/shop/loadtest/faults/history"
)

// judgeLimit ends a search that takes too long, which is no violation.
const judgeLimit = 5 * time.Second

// linearizable has Porcupine look for a sequence of the operations on the SKU Few, each at one moment between its request
// and its answer, in which every answer is true of a plain counter.
func linearizable(r *record) {
	few := r.SKUs.Few
	model := porcupine.Model{
		Init: func() any { return r.Supplied[few] },
		Step: func(state, input, output any) (bool, any) {
			free, units, refused := state.(int64), input.(int64), output.(bool)
			if refused {
				return free < -units, free
			}
			return free+units >= 0, free + units
		},
	}
	var all []porcupine.Operation
	add := func(call, answer time.Duration, units int64, refused bool) {
		all = append(all, porcupine.Operation{ClientId: len(all), Call: int64(call), Input: units, Output: refused, Return: int64(answer)})
	}
	ended := map[string]bool{}
	for _, o := range r.Operations {
		units := o.Units(few)
		if units == 0 || o.Kind == history.Look || o.Kind == history.Fail {
			continue
		}
		switch o.Outcome {
		case history.Placed: // whichever of its requests it was
			add(o.Sent(), o.Last().Answered, -units, false)
		case history.SoldOut: // by the last: one before that had an effect would have been replayed
			add(o.Last().Sent, o.Last().Answered, -units, true)
		case history.Cancelled:
			add(o.Sent(), o.Last().Answered, units, false)
			ended[o.OrderID] = true
		case history.Unknown, history.Paid, history.Restocked, history.Extended, history.Pending, history.NotThere,
			history.PaidTwice, history.Mismatch, history.Rejected:
		case history.Expired: // at some moment since it was placed
			add(r.placed[o.OrderID].Sent(), o.Last().Answered, units, false)
			ended[o.OrderID] = true
		}
	}
	for id, kept := range r.Orders { // whose beginning or end no buyer was answered
		o := r.byKey[buyerKey{kept.Buyer, kept.Key}]
		if units := kept.Units[few]; units > 0 && len(o.Requests) > 0 {
			if o.Outcome == history.Unknown {
				add(o.Sent(), never, -units, false)
			}
			if (kept.Status == "expired" || kept.Status == "cancelled") && !ended[id] {
				add(o.Sent(), never, units, false)
			}
		}
	}
	result := porcupine.CheckOperationsTimeout(model, all, judgeLimit)
	r.Undecided = result == porcupine.Unknown
	if result == porcupine.Illegal {
		r.broken("no sequence of the %d operations on %s explains their answers", len(all), few)
	}
}
