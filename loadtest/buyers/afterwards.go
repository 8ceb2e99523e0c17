package buyers

import (
	"context"
	"fmt"
	"net/http"

	"example.com/shop/loadtest/shopclient"
)

// again sends an order that was placed a second time, with the same key: as the
// impatient do, and programs that lost the answer.
func (b *buyer) again(ctx context.Context, p shopclient.Purchase, id string) func(*Record) {
	second := b.buy(ctx, p, true)
	b.race.Tally.Again.Add(1)
	return func(r *Record) {
		switch {
		case second.Outcome == Ordered && second.OrderID == id:
			r.Again = Same
		case second.Outcome == Ordered:
			r.Again, r.AgainBrought = Other, "order "+second.OrderID
		case second.Outcome == Refused:
			r.Again, r.AgainBrought = Other, "the answer that it is sold out"
		default:
			r.Again, r.AgainBrought = Unanswered, second.Reason
		}
	}
}

// cancelTries is how often a buyer tries to cancel. A shop that has oversold may
// refuse it for ever: fewer units are reserved than its orders hold.
const cancelTries = 3

// cancel ends an order.
func (b *buyer) cancel(ctx context.Context, id string) func(*Record) {
	for tries := 1; ; tries++ {
		answer, err := b.shops[tries%len(b.shops)].Cancel(ctx, b.name, id)
		if err == nil && answer.Status == http.StatusOK {
			b.race.Tally.Cancelled.Add(1)
			return func(r *Record) { r.Cancel = Cancelled }
		}
		final := err == nil && answer.Status < http.StatusInternalServerError && answer.RetryAfter < 0 && !answer.Problem.RetrySafe
		if final || tries == cancelTries || !b.pause(ctx, tries, answer, err) {
			reason := explain(answer, err)
			return func(r *Record) { r.Cancel, r.CancelBrought = Uncancelled, reason }
		}
	}
}

// Again is what sending an order a second time brought.
type Again int

const (
	// Once means that it was not sent again.
	Once Again = iota
	// Same means that the answer was the same order.
	Same
	// Other means that it was not, which no shop may do.
	Other
	// Unanswered means that no definite answer came.
	Unanswered
)

// Cancel is whether the buyer ended an order.
type Cancel int

const (
	// Kept means that the buyer wants it.
	Kept Cancel = iota
	// Cancelled means that the shop said so.
	Cancelled
	// Uncancelled means that the buyer asked and the shop did not say so. Recheck
	// finds out what came of it.
	Uncancelled
)

// CountAgain returns of how many orders sending them again brought this.
func (l Log) CountAgain(a Again) int64 {
	return l.count(func(r Record) bool { return r.Again == a })
}

// CountCancel returns how many orders came to this.
func (l Log) CountCancel(c Cancel) int64 {
	return l.count(func(r Record) bool { return r.Cancel == c && r.Outcome == Ordered })
}

// CountUncancelled returns how many orders their buyers could not cancel, whatever
// came of them later.
func (l Log) CountUncancelled() int64 {
	return l.count(func(r Record) bool { return r.CancelBrought != "" })
}

// Doubled tells of an order that was sent again and did not come out as one.
func (r Record) Doubled() string {
	return fmt.Sprintf("%s of %s, whose key brought %s the second time", r.OrderID, r.Buyer, r.AgainBrought)
}
