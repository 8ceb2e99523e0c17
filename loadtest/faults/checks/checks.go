// Package checks compares the answers to the clients of a history with the rows that the shop has kept. It shares no
// code with the shop's own audit, whose findings are a further check, and it sends no requests.
package checks

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"example.com/shop/loadtest/faults/history"
	"example.com/shop/loadtest/shopclient"
)

// Check is one promise.
type Check struct {
	Name  string
	About string
	check func(*record)
}

// All is the table. Adding a check is adding a row.
func All() []Check {
	return []Check{
		{"receipts", "every acknowledged order is there as it was acknowledged, and in the ledger exactly once", receipts},
		{"keys", "one order at most for each buyer and idempotency key, and none without a request", keys},
		{"levels", "the levels are what the ledger and the orders add up to, and none is negative", levels},
		{"fences", "no order was placed with a lower fence than the order before it", fences},
		{"refusals", "no final refusal while enough units were free for the whole request", refusals},
		{"ends", "each order ends, and once, as its buyer asked and was answered", ends},
		{"payments", "each payment has one answer and is on record with it: each paid order has one, and the operator sees the others", payments},
		{"outcomes", "every outcome is known in the end, and every answer is one that the API foresees", outcomes},
		{"porcupine", "the answers about one SKU are all true in some sequence (linearizability)", linearizable},
		{"recovery", "each shop sells again within 5 s of another server's takeover, and of the healed fault", recovery},
		{"waits", "a shop by lanes or batch answers within 2 s where nothing fails but the lock or a shop that holds leases", waits},
		{"sales", "no time without a sale takes longer than the fault permits", sales},
		{"locks", "a request that needs a row that another session has locked waits until the lock ends", locks},
		{"answered", "behind a global read lock, every request gets an HTTP answer, and no connections pile up in MySQL", answered},
		{"unnoticed", "with a rolling restart, and with nothing broken, no request fails and none has to be repeated", unnoticed},
		{"audit", "the shop's own audit finds no difference, and the levels that are in the rows", audit},
	}
}

const (
	most       = 5                            // violations that are listed for each check
	never      = time.Duration(math.MaxInt64) // later than the end of any history
	within     = 5 * time.Second              // in which each shop must sell after a healed fault or a takeover
	judgeLimit = 5 * time.Second              // of a search; a longer search is no violation

	// maxConns limits the connections to MySQL: one for each client's request, and two for each shop and this process.
	maxConns = 29

	// longest limits a request to a shop that does not depend on the lock. A shop by lanes may wait half a second to
	// release leases, and half a second for the next leases; the rest is for a busy machine.
	longest = 2 * time.Second
)

// Run checks a history that has ended, and its books.
func Run(h *history.History) (broken []history.Violation) {
	r := newRecord(h)
	for _, c := range All() {
		r.found = nil
		c.check(r)
		for _, detail := range r.found[:min(most, len(r.found))] {
			broken = append(broken, history.Violation{Check: c.Name, Detail: detail})
		}
		if more := len(r.found) - most; more > 0 {
			broken = append(broken, history.Violation{Check: c.Name, Detail: fmt.Sprintf("and %d more", more)})
		}
	}
	return broken
}

// record is a history, with indexes for the checks.
type record struct {
	*history.History
	placed map[string]history.Operation // by order, without replays
	byKey  map[key]history.Operation    // the first purchase of each key

	found []string // violations of the running check
}

type key struct{ buyer, key string }

func newRecord(h *history.History) *record {
	r := &record{History: h, placed: map[string]history.Operation{}, byKey: map[key]history.Operation{}}
	for _, o := range r.Operations {
		if o.Kind != history.Buy {
			continue
		}
		if _, again := r.byKey[key{o.Buyer, o.Key}]; !again {
			r.byKey[key{o.Buyer, o.Key}] = o
		}
		if o.Outcome == history.Placed && !o.Replay {
			r.placed[o.OrderID] = o
		}
	}
	return r
}

// broken notes a violation of the running check.
func (r *record) broken(format string, values ...any) {
	r.found = append(r.found, fmt.Sprintf(format, values...))
}

func receipts(r *record) {
	reserved := map[string][]history.Level{} // by order and SKU
	for _, m := range r.Movements {
		if m.Kind == "reserve" {
			reserved[m.OrderID+m.SKU] = append(reserved[m.OrderID+m.SKU], m.Level)
		}
	}
	for id, o := range r.placed {
		kept, there := r.Orders[id]
		if !there {
			r.broken("order %s is missing: %v", id, o)
			continue
		}
		want := map[string]int64{}
		for _, line := range o.Lines {
			want[line.SKU] = line.Units
		}
		if kept.Buyer != o.Buyer || !maps.Equal(kept.Units, want) {
			r.broken("order %s is %+v, but was acknowledged differently: %v", id, kept, o)
		}
		for sku, units := range want {
			if rows := reserved[id+sku]; !slices.Equal(rows, []history.Level{{Available: -units, Reserved: units}}) {
				r.broken("the ledger has the reservations %+v of %s for order %s, want one of %d units", rows, sku, id, units)
			}
		}
	}
}

func keys(r *record) {
	orders := map[key]string{}
	for id, kept := range r.Orders {
		by := key{kept.Buyer, kept.Key}
		o, asked := r.byKey[by]
		other, twice := orders[by]
		orders[by] = id
		switch {
		case twice:
			r.broken("key %s has two orders, %s and %s", kept.Key, id, other)
		case !asked:
			r.broken("order %s has the key %s, but no request had this key", id, kept.Key)
		case o.Outcome == history.SoldOut || o.Outcome == history.Rejected:
			r.broken("order %s exists, but its buyer was refused: %v", id, o)
		}
	}
	for _, o := range r.Operations {
		if first := r.byKey[key{o.Buyer, o.Key}]; o.Kind == history.Buy && (o.Outcome != first.Outcome || o.OrderID != first.OrderID) {
			r.broken("key %s has two answers: %v (order %s); %v (order %s)", o.Key, first, first.OrderID, o, o.OrderID)
		}
	}
}

func levels(r *record) {
	folded, want := map[string]history.Level{}, map[string]history.Level{} // by the ledger, and by deliveries and orders
	for _, m := range r.Movements {
		folded[m.SKU] = folded[m.SKU].Plus(m.Level)
	}
	for sku, units := range r.Supplied {
		want[sku] = history.Level{Supplied: units, Available: units}
	}
	for _, o := range r.Operations {
		if o.Outcome == history.Restocked {
			sku, units := o.Lines[0].SKU, o.Lines[0].Units
			want[sku] = want[sku].Plus(history.Level{Supplied: units, Available: units})
		}
	}
	for _, kept := range r.Orders {
		for sku, units := range kept.Units {
			switch kept.Status {
			case "pending":
				want[sku] = want[sku].Plus(history.Level{Available: -units, Reserved: units})
			case "paid":
				want[sku] = want[sku].Plus(history.Level{Available: -units, Sold: units})
			}
		}
	}
	for _, sku := range r.SKUs.All() {
		l := r.Levels[sku]
		if l != folded[sku] {
			r.broken("%s has %+v, but its ledger adds up to %+v", sku, l, folded[sku])
		}
		if l != want[sku] || min(l.Available, l.Reserved, l.Sold) < 0 {
			r.broken("%s has %+v, but its deliveries and orders add up to %+v", sku, l, want[sku])
		}
	}
}

// fences reads the reservations of the ledger in the order of their ids. An id begins with the time in milliseconds,
// and was made while its transaction had locked the row of the SKU.
func fences(r *record) {
	if r.ClocksApart {
		return
	}
	highest := map[string]history.Movement{} // by SKU
	millisecond := func(m history.Movement) string { return m.ID[:13] }
	for _, m := range r.Movements {
		if m.Kind != "reserve" || m.Fence == 0 {
			continue
		}
		before := highest[m.SKU]
		if m.Fence >= before.Fence {
			highest[m.SKU] = m
		} else if millisecond(m) != millisecond(before) {
			r.broken("%s: order %s was placed with fence %d after order %s with %d", m.SKU, m.OrderID, m.Fence, before.OrderID, before.Fence)
		}
	}
}

// refusals counts, for the time of each refused request, the units that other orders may have held. An order may hold its
// units from its first request until the first answer that it is cancelled or has expired, or, without such an answer,
// until the end. Restocked units count from the answer on. The units that are free by this count were certainly free.
func refusals(r *record) {
	type hold struct {
		sku         string
		from, until time.Duration
		units       int64 // of a delivery: less than 0
	}
	var holds []hold
	ended := map[string]time.Duration{}
	for _, o := range r.Operations {
		at := o.Last().Answered
		if o.Outcome == history.Restocked {
			holds = append(holds, hold{o.Lines[0].SKU, at, never, -o.Lines[0].Units})
		}
		if o.Outcome == history.Cancelled || o.Outcome == history.Expired {
			ended[o.OrderID] = min(cmp.Or(ended[o.OrderID], never), at)
		}
	}
	for id, kept := range r.Orders {
		if o, asked := r.byKey[key{kept.Buyer, kept.Key}]; asked {
			for sku, units := range kept.Units {
				holds = append(holds, hold{sku, o.Sent(), cmp.Or(ended[id], never), units})
			}
		}
	}
	free := func(sku string, at time.Duration) int64 {
		units := r.Supplied[sku]
		for _, h := range holds {
			if h.sku == sku && h.from <= at && at < h.until {
				units -= h.units
			}
		}
		return units
	}
	// least is the smallest number of units that were free at any moment of a request: it falls when a hold begins.
	least := func(sku string, of history.Request) int64 {
		lowest := free(sku, of.Sent)
		for _, h := range holds {
			if h.sku == sku && of.Sent < h.from && h.from <= of.Answered {
				lowest = min(lowest, free(sku, h.from))
			}
		}
		return lowest
	}
	for _, o := range r.Operations {
		lacks := func(line shopclient.Line) bool { return least(line.SKU, o.Last()) < line.Units }
		if o.Outcome == history.SoldOut && !slices.ContainsFunc(o.Lines, lacks) {
			r.broken("refused while at least %d units of %s were free: %v", least(o.Lines[0].SKU, o.Last()), o.Lines[0].SKU, o)
		}
	}
}

func ends(r *record) {
	ended := map[string][]string{} // by order: kind and SKU of each movement that ends it
	for _, m := range r.Movements {
		if m.Kind == "sell" || m.Kind == "release" {
			ended[m.OrderID] = append(ended[m.OrderID], m.Kind+" "+m.SKU)
		}
	}
	kinds := map[string]string{"paid": "sell", "cancelled": "release", "expired": "release"}
	ends := map[history.Kind]string{history.Pay: "paid", history.Cancel: "cancelled", history.Release: "cancelled"}
	asked := map[string]bool{} // by status and order
	for _, o := range r.Operations {
		asked[ends[o.Kind]+o.OrderID] = true
		answered := o.Outcome == history.Paid || o.Outcome == history.Cancelled || o.Outcome == history.Expired
		if kept := r.Orders[o.OrderID]; answered && kept.Status != string(o.Outcome) {
			r.broken("order %s is %q, but its buyer was answered %s: %v", o.OrderID, kept.Status, o.Outcome, o)
		}
	}
	for id, kept := range r.Orders {
		if (kept.Status == "paid" || kept.Status == "cancelled") && !asked[kept.Status+id] {
			r.broken("order %s is %s, but no request asked for that", id, kept.Status)
		}
		if kept.Status == "pending" {
			r.broken("order %s has not expired", id)
		}
		var want []string
		for sku := range kept.Units {
			if kind := kinds[kept.Status]; kind != "" {
				want = append(want, kind+" "+sku)
			}
		}
		slices.Sort(want)
		if slices.Sort(ended[id]); !slices.Equal(want, ended[id]) {
			r.broken("order %s is %s, but its ledger has %v", id, kept.Status, ended[id])
		}
	}
}

// payments expects one payment for each paid order, even if its buyer paid without a payment service.
func payments(r *record) {
	outcomes := map[string]history.Outcome{
		"": history.Paid, "already-paid": history.PaidTwice, "amount-mismatch": history.Mismatch,
		"order-expired": history.Expired, "order-ended": history.Cancelled,
	}
	pays := map[string]int{} // payments, by the order that they pay
	for id, p := range r.Payments {
		if p.Refusal != "" {
			continue
		}
		pays[p.OrderID]++
		if kept := r.Orders[p.OrderID]; kept.Total != p.Amount {
			r.broken("payment %s of %v pays order %s, which costs %v", id, p.Amount, p.OrderID, kept.Total)
		}
	}
	for id, kept := range r.Orders {
		if n := pays[id]; n != 1 && kept.Status == "paid" || n > 0 && kept.Status != "paid" {
			r.broken("order %s is %s, but has %d payments", id, kept.Status, n)
		}
	}
	first := map[string]history.Operation{}
	for _, o := range r.Operations {
		if o.PaymentID == "" || o.Outcome == history.Unknown || o.Outcome == history.Rejected {
			continue
		}
		if before, again := first[o.PaymentID]; again && before.Outcome != o.Outcome {
			r.broken("payment %s has two answers: %v; %v", o.PaymentID, before, o)
			continue
		}
		first[o.PaymentID] = o
		if p, there := r.Payments[o.PaymentID]; !there || p.OrderID != o.OrderID || p.Amount != o.Amount || outcomes[p.Refusal] != o.Outcome {
			r.broken("payment %s is on record as %+v: %v", o.PaymentID, p, o)
		}
		if refused := o.Outcome != history.Paid; refused != r.Refused[o.PaymentID] {
			r.broken("the operator sees payment %s among the refused: %v: %v", o.PaymentID, !refused, o)
		}
	}
}

func outcomes(r *record) {
	for _, o := range r.Operations {
		if o.Outcome == history.Unknown || o.Outcome == history.Rejected {
			r.broken("%s, after %d requests: %v", o.Outcome, len(o.Requests), o)
		}
		for _, request := range o.Requests {
			// The clients stay below all limits that are answered with 429.
			if strings.HasPrefix(request.Answer, "500") || strings.HasPrefix(request.Answer, "429") {
				r.broken("shop %d answered %s: %v", request.Shop+1, request.Answer, o)
			}
		}
	}
}

func recovery(r *record) {
	if r.Recovery > within {
		r.broken("not every shop sold again within %v: it took %v, or never happened", within, r.Recovery.Round(time.Millisecond))
	}
}

func waits(r *record) {
	for _, o := range r.Operations {
		for _, request := range o.Requests {
			took := request.Answered - request.Sent
			if !r.LockAlone || took <= longest {
				continue
			}
			if by := r.Strategies[request.Shop]; by == "lanes" || by == "batch" {
				r.broken("shop %d, by %s, took %v: %v", request.Shop+1, by, took.Round(time.Millisecond), o)
			}
		}
	}
}

func sales(r *record) {
	if r.MaxGap > 0 && r.Gap > r.MaxGap {
		r.broken("no sale of %s for %v, from %v on: want %v at most", cmp.Or(r.GapOf, "any SKU"), r.Gap, r.BeforeGap, r.MaxGap)
	}
}

func locks(r *record) {
	waited := func(o history.Operation) bool {
		return strings.HasPrefix(o.Buyer, r.Locked) && o.Sent() < r.Healed && min(o.Last().Answered, r.Healed)-o.Sent() > longest
	}
	if r.Locked != "" && !slices.ContainsFunc(r.Operations, waited) {
		r.broken("no request of %s... waited for the lock", r.Locked)
	}
}

func answered(r *record) {
	for _, o := range r.Operations {
		for _, request := range o.Requests {
			if r.Answered && strings.IndexAny(request.Answer, "2345") != 0 {
				r.broken("shop %d gave no answer for %v (%s): %v", request.Shop+1, request.Answered-request.Sent, request.Answer, o)
			}
		}
	}
	if r.MySQLConns > maxConns {
		r.broken("MySQL had %d connections, want %d at most", r.MySQLConns, maxConns)
	}
}

func unnoticed(r *record) {
	for _, o := range r.Operations {
		if first := o.Requests[0]; r.Unnoticed && len(o.Requests) > 1 {
			r.broken("a request to shop %d failed after %v (%s): %v", first.Shop+1, first.Answered-first.Sent, first.Answer, o)
		}
	}
}

func audit(r *record) { r.found = r.Findings }

// linearizable lets Porcupine look for a sequence of the operations on the SKU Few in which every answer is true of a plain
// counter. Each operation takes place at one moment between its request and its answer.
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
		case history.Placed: // by any of its requests
			add(o.Sent(), o.Last().Answered, -units, false)
		case history.SoldOut: // by the last request: if an earlier one had had an effect, the answer would be a replay
			add(o.Last().Sent, o.Last().Answered, -units, true)
		case history.Cancelled:
			add(o.Sent(), o.Last().Answered, units, false)
			ended[o.OrderID] = true
		case history.Expired: // at some moment after it was placed
			add(r.placed[o.OrderID].Sent(), o.Last().Answered, units, false)
			ended[o.OrderID] = true
		default: // takes no units, and gives none back
		}
	}
	for id, kept := range r.Orders { // adds orders whose beginning or end no answer told
		o := r.byKey[key{kept.Buyer, kept.Key}]
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
