// Package traffic has the clients of a shop during a fault. They buy, pay, cancel, let orders expire, look at their own
// orders and at other buyers' orders, repeat requests with the same key, and restock. All random choices come from a seed.
// During any fault, a client insists on a final answer, as the buyers of loadtest/crowd do, and records each request.
package traffic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/faults/history"
	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/shopclient"
)

const (
	fewBuyers = 4 // more buyers would make more sequences of events than Porcupine can try

	requestLimit = 3 * time.Second  // after which the outcome is unknown, and the client asks again
	patientLimit = 40 * time.Second // of patient clients: longer than a shop takes to answer
	settleLimit  = 40 * time.Second // for the last answers after the end of the traffic
	restockEvery = 150 * time.Millisecond
	forgetEvery  = 400 * time.Millisecond // shortest time between two forgotten orders of a buyer, who may have ten pending
)

// Supply puts the SKUs of a history up for sale. A buyer may have one unit of Few, and no correct client wants more.
func Supply(ctx context.Context, operator *shopclient.Client, h *history.History) error {
	h.Supplied = map[string]int64{h.SKUs.Deep: 1_000_000, h.SKUs.Hot: 20, h.SKUs.Cold: 100_000, h.SKUs.Few: 3}
	for sku, units := range h.Supplied {
		if err := operator.Create(ctx, sku, units); err != nil {
			return err
		}
	}
	return operator.Limit(ctx, h.SKUs.Few, 1)
}

// Traffic is the clients of one history.
type Traffic struct {
	History *history.History
	Shops   []*system.Shop
	Buyers  int  // of Deep, Hot and Cold; further buyers want Few or Deep alone, or pay late
	Unpaid  bool // clients cancel instead of paying, because the shops may be older than payments

	conns *http.Client
	turns atomic.Int64 // number of requests, which go to the shops in turn
}

// Start sends requests until end is called, which waits for the last answers.
func (t *Traffic) Start(ctx context.Context) (end func()) {
	limit := requestLimit
	if t.History.Unnoticed || t.History.Answered {
		limit = patientLimit
	}
	works := slices.Concat(
		slices.Repeat([]func(*client){(*client).shop}, t.Buyers),
		slices.Repeat([]func(*client){(*client).takeFew}, fewBuyers),
		[]func(*client){(*client).buyOnce, (*client).payLate, (*client).restock})
	t.conns = shopclient.NewConnections(len(works), limit)
	asking, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	sending, stop := context.WithCancel(asking)
	for i, work := range works {
		c := &client{Traffic: t, name: fmt.Sprintf("%s-buyer-%d", t.History.Name, i), asking: asking, dice: rand.New(rand.NewPCG(t.History.Seed, uint64(i)))}
		running.Go(func() {
			for sending.Err() == nil {
				work(c)
			}
			c.repeat()
		})
	}
	return func() {
		stop()
		defer time.AfterFunc(settleLimit, cancel).Stop()
		running.Wait()
		cancel()
		t.conns.CloseIdleConnections()
	}
}

// client is one goroutine, and one buyer.
type client struct {
	*Traffic
	name   string
	asking context.Context //nolint:containedctx // of all requests
	dice   *rand.Rand
	keys   int
	forgot time.Time           // time of the last forgotten order
	told   []history.Operation // the provider's reports of payments
}

// shop places an order, and pays, cancels or forgets it.
func (c *client) shop() {
	skus := c.History.SKUs
	lines := []shopclient.Line{{SKU: skus.Hot, Units: 1}, {SKU: skus.Cold, Units: 2}}
	switch n := c.dice.IntN(10); {
	case n < 4:
		lines = []shopclient.Line{{SKU: skus.Deep, Units: 1}}
	case n < 7:
		lines = []shopclient.Line{{SKU: skus.Hot, Units: 1 + c.dice.Int64N(3)}}
	}
	o := c.buy(lines...)
	if o.Outcome != history.Placed {
		return
	}
	again := c.dice.IntN(10)
	replay := o
	replay.Requests, replay.Replay = nil, true
	if again == 0 {
		c.insist(replay)
	}
	held, ok := c.extend(o)
	if !ok {
		return
	}
	switch n := c.dice.IntN(10); {
	case n < 2 && time.Since(c.forgot) > forgetEvery:
		c.forgot = time.Now() // the order expires
	case n < 5:
		c.pay(held)
	case n == 5: // both at once: exactly one of them ends the order
		var both sync.WaitGroup
		both.Go(func() { c.pay(held) })
		c.cancel(held)
		both.Wait()
	default:
		c.cancel(held)
	}
	switch again {
	case 1:
		c.insist(replay) // the answer is still the order as it was placed
	case 2, 3:
		c.insist(about(history.Look, held))
	case 4:
		pry := about(history.Pry, o)
		pry.Buyer = "stranger"
		c.insist(pry)
	}
}

// takeFew buys a unit of Few, and gives it back before it may buy another.
func (c *client) takeFew() {
	c.take(c.History.SKUs.Few)
	shopclient.Pause(c.asking, 30*time.Millisecond)
}

// buyOnce buys as a buyer who has no other order.
func (c *client) buyOnce() {
	c.name = fmt.Sprintf("%s-new-%d", c.History.Name, c.keys)
	c.take(c.History.SKUs.Deep)
}

// take buys a unit, and gives it back.
func (c *client) take(sku string) {
	switch o := c.buy(shopclient.Line{SKU: sku, Units: 1}); {
	case o.Outcome != history.Placed:
	case !c.Unpaid && c.dice.IntN(4) == 0:
		c.insist(about(history.Release, o))
	default:
		c.cancel(o)
	}
}

// payLate places an order, and pays around the moment at which the order expires.
func (c *client) payLate() {
	o := c.buy(shopclient.Line{SKU: c.History.SKUs.Deep, Units: 1})
	around := time.Duration(c.dice.IntN(100)-50) * time.Millisecond
	if o.Outcome != history.Placed {
		return
	}
	if held, ok := c.extend(o); ok && shopclient.Pause(c.asking, time.Until(held.Expires)+around) {
		c.pay(held)
	}
}

// extend extends the hold of some orders. It reports whether the order can still be paid.
func (c *client) extend(placed history.Operation) (held history.Operation, ok bool) {
	if c.Unpaid || c.dice.IntN(6) > 0 {
		return placed, true
	}
	o := c.insist(about(history.Extend, placed))
	placed.Expires = o.Expires
	return placed, o.Outcome == history.Extended
}

// pay pays for an order. A provider may also repeat its report, charge twice, take a wrong amount, or report a failed
// payment. Its messages come in any order, and some at once.
func (c *client) pay(o history.Operation) {
	if c.Unpaid {
		c.cancel(o)
		return
	}
	payment := about(history.Pay, o)
	payment.PaymentID, payment.Amount = "pi-"+o.Key, o.Amount
	messages := []history.Operation{payment}
	switch other := payment; c.dice.IntN(8) {
	case 0:
		payment.Replay = true // either may come first
		messages = []history.Operation{payment, payment}
	case 1:
		other.PaymentID += "-twice"
		messages = append(messages, other)
	case 2:
		other.PaymentID += "-wrong"
		other.Amount.Minor--
		messages = append(messages, other)
	case 3:
		messages = append(messages, about(history.Fail, o))
	case 4:
		messages = append(messages, about(history.Release, o))
	case 5:
		c.repeat()
	}
	c.dice.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
	atOnce := c.dice.IntN(2) == 0
	var all sync.WaitGroup
	for _, m := range messages {
		if m.Kind == history.Pay {
			c.told = append(c.told, m)
		}
		all.Go(func() { c.insist(m) })
		if !atOnce {
			all.Wait()
		}
	}
	all.Wait()
}

// repeat lets the provider repeat a report of a payment, however old it is.
func (c *client) repeat() {
	if len(c.told) > 0 {
		o := c.told[c.dice.IntN(len(c.told))]
		o.Replay = true
		c.insist(o)
	}
}

// about returns an operation on an order.
func about(kind history.Kind, placed history.Operation) history.Operation {
	return history.Operation{Kind: kind, Buyer: placed.Buyer, Lines: placed.Lines, OrderID: placed.OrderID, Expires: placed.Expires}
}

// restock brings in units of Hot.
func (c *client) restock() {
	shopclient.Pause(c.asking, restockEvery)
	c.insist(history.Operation{Kind: history.Restock, Key: c.key(), Lines: []shopclient.Line{{SKU: c.History.SKUs.Hot, Units: 4}}})
}

func (c *client) buy(lines ...shopclient.Line) history.Operation {
	return c.insist(history.Operation{Kind: history.Buy, Buyer: c.name, Key: c.key(), Lines: lines})
}

func (c *client) cancel(placed history.Operation) {
	o := about(history.Cancel, placed)
	if c.keys%2 == 0 { // the other half has no key
		o.Key = "cancel-" + placed.Key
	}
	c.insist(o)
}

func (c *client) key() string {
	c.keys++
	return fmt.Sprintf("%s-%d", c.name, c.keys)
}

// insist asks one shop after the other until an answer is final. It records the operation and returns it with its outcome.
func (c *client) insist(o history.Operation) history.Operation {
	asked := o
	late := o.Kind == history.Pay && !o.Replay && time.Since(o.Expires) > time.Millisecond // the precision of SQLite's clock
	o.Outcome = history.Unknown
	patience := crowd.Patience{Pause: 20 * time.Millisecond, MaxPause: 200 * time.Millisecond}
	patience.Insist(c.asking, func(int) (shopclient.Answer, error) {
		shop, client := c.nextShop()
		if client == nil {
			return shopclient.Answer{}, errors.New("the traffic has ended")
		}
		sent := c.History.Now()
		answer, err := c.ask(client, o)
		o.Requests = append(o.Requests, history.Request{Shop: shop, Sent: sent, Answered: c.History.Now(), Answer: shopclient.Explain(answer, err)})
		o.Outcome = outcome(o.Kind, answer, err)
		switch {
		case wrong(asked, o.Outcome, answer, late):
			o.Outcome = history.Rejected
		case o.Outcome == history.Placed:
			o.OrderID, o.Expires, o.Amount = answer.Order.ID, answer.Order.ExpiresAt, answer.Order.Total
		case o.Outcome == history.Extended:
			o.Expires = answer.Order.ExpiresAt
		}
		return answer, err
	})
	if len(o.Requests) > 0 {
		c.History.Add(o)
	}
	return o
}

// nextShop returns the next shop that clients do not avoid. After the end of the traffic, client is nil.
func (c *client) nextShop() (shop int, client *shopclient.Client) {
	for c.asking.Err() == nil {
		shop = int(c.turns.Add(1)) % len(c.Shops)
		if client = c.Shops[shop].Client(c.conns); client != nil {
			return shop, client
		}
		shopclient.Pause(c.asking, time.Millisecond)
	}
	return 0, nil
}

func (c *client) ask(shop *shopclient.Client, o history.Operation) (shopclient.Answer, error) {
	switch o.Kind {
	case history.Buy:
		return shop.Buy(c.asking, shopclient.Purchase{Buyer: o.Buyer, Key: o.Key, Lines: o.Lines, Think: -1})
	case history.Pay:
		return shop.TakePayment(c.asking, shopclient.Payment{ID: o.PaymentID, OrderID: o.OrderID, Amount: o.Amount})
	case history.Cancel:
		return shop.Cancel(c.asking, o.Buyer, o.OrderID, o.Key)
	case history.Restock:
		return shop.Restock(c.asking, o.Lines[0].SKU, o.Key, o.Lines[0].Units)
	case history.Extend:
		return shop.Extend(c.asking, o.OrderID)
	case history.Fail, history.Release:
		return shop.PaymentFailed(c.asking, o.OrderID, o.Kind == history.Release)
	default: // Look and Pry
		return shop.Look(c.asking, o.Buyer, o.OrderID)
	}
}

// wrong reports whether an answer cannot be true of the operation. late: the payment began after the order's end.
func wrong(asked history.Operation, outcome history.Outcome, a shopclient.Answer, late bool) bool {
	o, expires := a.Order, asked.Expires
	if asked.Kind == history.Extend {
		expires = expires.Add(system.PayExtension)
	}
	return o.ID != "" && !slices.Equal(o.Lines, asked.Lines) ||
		o.ID != "" && asked.OrderID != "" && (o.ID != asked.OrderID || !o.ExpiresAt.Equal(expires)) ||
		outcome == history.Placed && o.Status != "pending" ||
		outcome == history.Expired && time.Now().Before(asked.Expires) ||
		outcome == history.Paid && late ||
		outcome == history.Pending && asked.Kind == history.Release ||
		outcome != history.Unknown && asked.PaymentID != "" && a.Problem.Refund == (outcome == history.Paid)
}

// outcome returns the outcome that an answer tells. Unknown: the client has to ask again.
func outcome(kind history.Kind, a shopclient.Answer, err error) history.Outcome {
	good := a.Status == http.StatusOK || a.Status == http.StatusCreated
	done := map[history.Kind]history.Outcome{
		history.Buy: history.Placed, history.Pay: history.Paid, history.Cancel: history.Cancelled, history.Restock: history.Restocked,
		history.Extend: history.Extended,
	}[kind]
	code := history.Outcome(a.Problem.Code())
	status := history.Outcome(cmp.Or(a.Problem.OrderStatus, a.Order.Status))
	switch {
	case !crowd.Final(a, err):
		return history.Unknown
	case kind == history.Pry && a.Status == http.StatusNotFound:
		return history.NotThere
	case kind == history.Pry:
		return history.Rejected
	case good && done != "":
		return done
	case kind == history.Pay && (code == history.PaidTwice || code == history.Mismatch):
		return code
	case kind == history.Buy && code == history.SoldOut:
		return history.SoldOut
	case status == history.Paid, status == history.Cancelled, status == history.Expired, good && status == history.Pending:
		return status
	}
	return history.Rejected
}
