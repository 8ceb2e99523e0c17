package checks

import (
	"maps"
	"slices"
	"testing"
	"time"

	"example.com/shop/loadtest/faults/history"
	"example.com/shop/loadtest/shopclient"
)

const at = time.Millisecond

// example is a history in which nothing is wrong: ann buys two of three mugs and pays, and her second payment is to be
// refunded; bob is refused two, gets one and cancels it, and three are brought in.
func example() *history.History {
	request := func(from, to time.Duration) []history.Request {
		return []history.Request{{Sent: from * at, Answered: to * at, Answer: "201"}}
	}
	lines := func(n int64) []shopclient.Line { return []shopclient.Line{{SKU: "few", Units: n}} }
	price := func(minor int64) shopclient.Money { return shopclient.Money{Minor: minor, Currency: "EUR"} }
	h := &history.History{
		Healed: at, Recovery: 9 * at, Ended: 30 * at,
		SKUs: history.SKUs{Few: "few", Hot: "few", Deep: "few", Cold: "few"}, Supplied: map[string]int64{"few": 3},
		Operations: []history.Operation{
			{Kind: history.Buy, Buyer: "ann", Key: "a", Lines: lines(2), OrderID: "1", Outcome: history.Placed, Requests: request(0, 10)},
			{Kind: history.Buy, Buyer: "bob", Key: "b", Lines: lines(2), Outcome: history.SoldOut, Requests: request(11, 12)},
			{Kind: history.Buy, Buyer: "bob", Key: "c", Lines: lines(1), OrderID: "2", Outcome: history.Placed, Requests: request(13, 20)},
			{Kind: history.Pay, Buyer: "ann", Key: "a", Lines: lines(2), OrderID: "1", Outcome: history.Paid, Requests: request(21, 22), PaymentID: "p", Amount: price(200)},
			{Kind: history.Pay, Buyer: "ann", Lines: lines(2), OrderID: "1", Outcome: history.PaidTwice, Requests: request(23, 24), PaymentID: "q", Amount: price(200)},
			{Kind: history.Cancel, Buyer: "bob", Key: "c", Lines: lines(1), OrderID: "2", Outcome: history.Cancelled, Requests: request(23, 24)},
			{Kind: history.Restock, Key: "d", Lines: lines(3), Outcome: history.Restocked, Requests: request(25, 26)},
		},
		Refused: map[string]bool{"q": true},
	}
	move := func(id, kind, order string, fence int64, l history.Level) history.Movement {
		return history.Movement{ID: id + "-0000-0000-0000", SKU: "few", Kind: kind, OrderID: order, Fence: fence, Level: l}
	}
	h.Books = history.Books{
		Orders: map[string]history.Order{
			"1": {Buyer: "ann", Key: "a", Status: "paid", Units: map[string]int64{"few": 2}, Total: price(200)},
			"2": {Buyer: "bob", Key: "c", Status: "cancelled", Units: map[string]int64{"few": 1}, Total: price(100)},
		},
		Payments: map[string]history.Payment{
			"p": {OrderID: "1", Amount: price(200)},
			"q": {OrderID: "1", Amount: price(200), Refusal: "already-paid"},
		},
		Movements: []history.Movement{
			move("00000000", "supply", "", 0, history.Level{Supplied: 3, Available: 3}),
			move("00000001", "reserve", "1", 5, history.Level{Available: -2, Reserved: 2}),
			move("00000002", "reserve", "2", 6, history.Level{Available: -1, Reserved: 1}),
			move("00000003", "sell", "1", 0, history.Level{Reserved: -2, Sold: 2}),
			move("00000004", "release", "2", 0, history.Level{Available: 1, Reserved: -1}),
			move("00000005", "supply", "", 0, history.Level{Supplied: 3, Available: 3}),
		},
		Levels: map[string]history.Level{"few": {Supplied: 6, Available: 4, Sold: 2}},
	}
	return h
}

// slowBy makes the first request to a shop that sells by the strategy slow, while the lock is broken.
func slowBy(h *history.History, strategy string) {
	h.LockAlone, h.Strategies[0] = true, strategy
	h.Operations[0].Requests[0].Answered += longest
}

func found(h *history.History) (names []string) {
	for _, v := range Run(h) {
		names = append(names, v.Check)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Each check by the mistakes that it alone, or it among others, has to see.
func TestRun(t *testing.T) {
	t.Parallel()
	if h := example(); len(found(h)) > 0 {
		t.Fatalf("nothing is wrong, and got %v", Run(h))
	}
	order := func(h *history.History, id string, change func(*history.Order)) {
		o := h.Orders[id]
		o.Units = maps.Clone(o.Units)
		change(&o)
		h.Orders[id] = o
	}
	payment := func(h *history.History, id string, change func(*history.Payment)) {
		p := h.Payments[id]
		change(&p)
		h.Payments[id] = p
	}
	for name, c := range map[string]struct {
		change func(*history.History)
		want   string
	}{
		"lost order":  {func(h *history.History) { delete(h.Orders, "1") }, "receipts"},
		"other buyer": {func(h *history.History) { order(h, "1", func(o *history.Order) { o.Buyer = "bob" }) }, "receipts"},
		"other units": {func(h *history.History) {
			order(h, "1", func(o *history.Order) { o.Units["few"] = 1 })
		}, "receipts"},
		"not in the ledger": {func(h *history.History) { h.Movements = slices.Delete(h.Movements, 1, 2) }, "receipts"},
		"twice in the ledger": {func(h *history.History) {
			h.Movements = append(h.Movements, h.Movements[1])
		}, "receipts"},
		"two orders of a key": {func(h *history.History) { h.Orders["3"] = h.Orders["1"] }, "keys"},
		"order of no request": {func(h *history.History) { order(h, "2", func(o *history.Order) { o.Key = "x" }) }, "keys"},
		"order of a refusal":  {func(h *history.History) { order(h, "2", func(o *history.Order) { o.Key = "b" }) }, "keys"},
		"two answers to a key": {func(h *history.History) {
			again := h.Operations[0]
			again.OrderID = "2"
			h.Operations = append(h.Operations, again)
		}, "keys"},
		"level": {func(h *history.History) {
			h.Levels["few"] = history.Level{Supplied: 6, Available: 3, Sold: 3}
		}, "levels"},
		"lost update": {func(h *history.History) { h.Movements[1].Available, h.Movements[1].Reserved = -1, 1 }, "levels"},
		"delivery counted twice": {func(h *history.History) {
			h.Movements = append(h.Movements, h.Movements[5])
			h.Levels["few"] = history.Level{Supplied: 9, Available: 7, Sold: 2}
		}, "levels"},
		"falling fence":     {func(h *history.History) { h.Movements[2].Fence = 4 }, "fences"},
		"refused too early": {func(h *history.History) { h.Operations[1].Lines[0].Units = 1 }, "refusals"},
		"refused after a delivery": {func(h *history.History) {
			h.Operations[1].Requests = []history.Request{{Sent: 30 * at, Answered: 31 * at}}
		}, "refusals"},
		"ended twice": {func(h *history.History) { h.Movements[4].OrderID = "1" }, "ends"},
		"paid and cancelled": {func(h *history.History) {
			order(h, "1", func(o *history.Order) { o.Status = "cancelled" })
		}, "ends"},
		"released, and no message said so": {func(h *history.History) { h.Operations[5].Kind = history.Extend }, "ends"},
		"payment forgotten":                {func(h *history.History) { delete(h.Payments, "p") }, "payments"},
		"refusal forgotten":                {func(h *history.History) { delete(h.Payments, "q") }, "payments"},
		"refusal not shown":                {func(h *history.History) { h.Refused = nil }, "payments"},
		"paid twice": {func(h *history.History) {
			payment(h, "q", func(p *history.Payment) { p.Refusal = "" })
		}, "payments"},
		"payment of another amount": {func(h *history.History) {
			h.Operations[3].Amount.Minor--
			payment(h, "p", func(p *history.Payment) { p.Amount.Minor-- })
		}, "payments"},
		"payment of another order": {func(h *history.History) {
			payment(h, "p", func(p *history.Payment) { p.OrderID = "2" })
		}, "payments"},
		"two answers to a payment": {func(h *history.History) {
			again := h.Operations[4]
			again.Outcome = history.Mismatch
			h.Operations = append(h.Operations, again)
		}, "payments"},
		"no final answer":   {func(h *history.History) { h.Operations[3].Outcome = history.Unknown }, "outcomes"},
		"unforeseen answer": {func(h *history.History) { h.Operations[3].Outcome = history.Rejected }, "outcomes"},
		"paid, and not sold": {func(h *history.History) {
			h.Levels["few"], h.Movements[3].Level = history.Level{Supplied: 6, Available: 4, Reserved: 2}, history.Level{}
		}, "levels"},
		"answer 500":       {func(h *history.History) { h.Operations[3].Requests[0].Answer = "500 internal" }, "outcomes"},
		"late sale":        {func(h *history.History) { h.Recovery = 6 * time.Second }, "recovery"},
		"no sale for long": {func(h *history.History) { h.Gap, h.MaxGap = 4*time.Second+1, 4*time.Second }, "sales"},
		"no request waits": {func(h *history.History) { h.Locked = "ann" }, "locks"},
		"no HTTP answer": {func(h *history.History) {
			h.Answered, h.Operations[3].Requests[0].Answer = true, "EOF"
		}, "answered"},
		"connections pile up": {func(h *history.History) { h.MySQLConns = maxConns + 1 }, "answered"},
		"wait for a lease":    {func(h *history.History) { slowBy(h, "lanes") }, "waits"},
		"a request sent again": {func(h *history.History) {
			h.Unnoticed = true
			h.Operations[0].Requests = append(h.Operations[0].Requests, h.Operations[0].Requests...)
		}, "unnoticed"},
		"what the audit finds":     {func(h *history.History) { h.Findings = []string{"I1 few: oversold"} }, "audit"},
		"more sold than there are": {func(h *history.History) { h.Supplied["few"] = 2 }, "porcupine"},
	} {
		h := example()
		c.change(h)
		if got := found(h); !slices.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %s among them", name, got, c.want)
		}
	}
	h := example()
	h.Answered, h.Locked, h.Healed = true, "bob", 20*time.Second
	h.Operations[5].Requests[0].Answered = h.Healed
	if wrong := found(h); slices.Contains(wrong, "locks") || slices.Contains(wrong, "answered") {
		t.Errorf("bob has waited, and every request has an answer: got %q", wrong)
	}
	h = example()
	if slowBy(h, "redis"); slices.Contains(found(h), "waits") {
		t.Error("an order by redis waits for its lease, and waits has found it")
	}
}
