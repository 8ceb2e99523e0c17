package designs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/shops"
)

const (
	saleBuyers = 64               // all buy the same SKU
	saleLimit  = 20 * time.Second // for the part of a sale before a fault, and for the part after it
	stopLimit  = time.Minute      // for a seller that is asked to end: its writer may be behind
	tries      = 10               // at most, of a design that is known to be wrong
)

// testbed has the servers on which the sales are broken.
type testbed struct {
	one      Servers                // its Redis is emptied
	group    Servers                // with a Redis that Sentinels replace
	sentinel *testserver.RedisGroup // of the group; without it, no failover takes place
}

// fault is a fault in the middle of a sale.
type fault struct {
	name, about string
	redis       bool             // only for designs where Redis decides; it takes place on the group
	moment      func(*sale) bool // when the fault happens, once a third of the units is sold
	does        func(*sale, context.Context) error
}

func allFaults() []fault {
	now := func(*sale) bool { return true }
	atTheEnd := func(s *sale) bool { return s.left.Load() > 0 } // orders that are not committed roll back then
	unheard := func(s *sale) bool { return s.sold.Load() >= s.supply*7/12 }
	flush := func(s *sale, ctx context.Context) error { return s.on.Redis.FlushAll(ctx).Err() }
	failOver := func(s *sale, ctx context.Context) error { return s.sentinel.FailOver(ctx) }
	return []fault{
		{"kill -9", "the process is killed and started again", false, now, (*sale).restart},
		{"kill -9 at the end", "the same, when the first buyer is told that the SKU is sold out", false, atTheEnd, (*sale).restart},
		{"FLUSHALL", "Redis forgets everything, as without persistence in a restart", false, now, flush},
		{"failover", "Redis is replaced by a replica that was cut off before; where Redis decides", true, unheard, failOver},
	}
}

// breakAll sells by a design once for each fault, and writes the outcomes to its row. A design that is known to be
// wrong is tried again if it shows nothing: the last try counts.
func (g *testbed) breakAll(ctx context.Context, row *Row, supply int64) error {
	for again := true; again; again = row.Wrong && row.Verdict == unharmed && row.Tries < tries {
		row.Tries, row.Faults = row.Tries+1, nil
		for _, f := range allFaults() {
			if f.redis && (!row.Redis || g.sentinel == nil) {
				continue
			}
			o, err := g.breakBy(ctx, row.Design, f, supply)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", row.Name, f.name, err)
			}
			row.Faults = append(row.Faults, o)
		}
		row.Verdict, _ = verdictOf(row.Design, row.Faults...)
	}
	return nil
}

// sale is one sale with a fault.
type sale struct {
	*testbed
	design Design
	fault  fault
	on     Servers
	sku    string
	supply int64

	seller   *exec.Cmd
	ended    chan struct{} // closed when the seller has ended
	log      testserver.LogBuffer
	receipts []receipt // complete when the seller has ended
	sold     atomic.Int64
	left     atomic.Int64 // buyers of the seller that were told that the SKU is sold out

	broken, healed time.Time // when the fault began, and when it was repaired
}

// breakBy holds one sale:
//
//	units -> seller -> fault -> all buyers were told that the SKU is sold out -> seller has written all -> verdict
func (g *testbed) breakBy(ctx context.Context, d Design, f fault, supply int64) (o Outcome, err error) {
	s := &sale{testbed: g, design: d, fault: f, on: g.one, sku: order.NewID(), supply: supply}
	if f.redis {
		s.on = g.group
		defer func() { err = errors.Join(err, g.sentinel.Restore(context.WithoutCancel(ctx))) }()
	}
	if err := s.on.Redis.FlushAll(ctx).Err(); err != nil {
		return o, err
	}
	if err := d.putUpForSale(ctx, s.on, map[string]int64{s.sku: supply}); err != nil {
		return o, err
	}
	if err := s.start(ctx); err != nil {
		return o, err
	}
	defer func() { s.end(os.Kill) }()
	s.await(ctx, func() bool { return s.sold.Load() >= supply/3 })
	if f.redis { // only the master knows of the units that are sold from now on
		if err := g.sentinel.CutReplicas(ctx); err != nil {
			return o, err
		}
	}
	s.await(ctx, func() bool { return f.moment(s) })
	if s.sold.Load() < supply/3 || !f.moment(s) {
		return o, fmt.Errorf("%d units were sold before the fault: %s", s.sold.Load(), &s.log)
	}
	s.broken = time.Now()
	if err := f.does(s, ctx); err != nil {
		return o, err
	}
	s.healed = time.Now()
	// A seller that has forgotten its sales may sell for ever.
	s.await(ctx, func() bool { return s.left.Load() == saleBuyers || s.sold.Load() > 2*supply })
	s.end(os.Interrupt)
	if !s.seller.ProcessState.Success() {
		return o, fmt.Errorf("the seller ended: %v, %s", s.seller.ProcessState, &s.log)
	}
	rows, err := s.rows(ctx)
	return s.judge(rows), err
}

func (s *sale) restart(ctx context.Context) error {
	s.end(os.Kill)
	return s.start(ctx)
}

// await returns when there are enough receipts, no more will come, or the limit has passed.
func (s *sale) await(ctx context.Context, enough func() bool) {
	for limit := time.Now().Add(saleLimit); !enough() && time.Now().Before(limit) && ctx.Err() == nil; {
		select {
		case <-s.ended:
			return
		case <-time.After(100 * time.Microsecond):
		}
	}
}

// task is what a seller's process reads from stdin: addresses may hold passwords.
type task struct{ Design, DSN, Address, SKU string }

// start starts this program once more, as a process that calls sell.
func (s *sale) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, _ := json.Marshal(task{s.design.Name, s.on.DSN, s.on.Address, s.sku})            // strings cannot fail
	seller := exec.CommandContext(context.WithoutCancel(ctx), self, "designs", "--seller") //nolint:gosec // itself
	seller.Stdin, seller.Stderr = bytes.NewReader(text), &s.log
	stdout, err := seller.StdoutPipe()
	if err == nil {
		err = seller.Start()
	}
	if err != nil {
		return err
	}
	s.seller, s.ended = seller, make(chan struct{})
	s.left.Store(0)
	go func() {
		defer close(s.ended)
		for lines, r := json.NewDecoder(stdout), (receipt{}); lines.Decode(&r) == nil; r = (receipt{}) {
			s.receipts = append(s.receipts, r)
			switch r.Answer {
			case sold:
				s.sold.Add(1)
			case refused:
				s.left.Add(1)
			}
		}
		_ = seller.Wait()
	}()
	return nil
}

// end sends the signal to the process, and returns when the process has ended.
func (s *sale) end(by os.Signal) {
	_ = s.seller.Process.Signal(by) // unless it has ended
	limit := time.AfterFunc(stopLimit, func() { _ = s.seller.Process.Kill() })
	defer limit.Stop()
	<-s.ended
}

// sell is the whole program of a seller's process. Buyers ask the design that the parent chose, again and again, and
// write a receipt of each answer before they ask again. A buyer who is told that the SKU is sold out leaves, and so
// does a buyer whose receipt nobody reads: the parent has died.
func sell(ctx context.Context, all []Design, stdin io.Reader, receipts io.Writer) (err error) {
	var g task
	if err := json.NewDecoder(stdin).Decode(&g); err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(d Design) bool { return d.Name == g.Design })
	if i < 0 {
		return fmt.Errorf("there is no design %q", g.Design)
	}
	var opened shops.Undo
	defer func() { err = errors.Join(err, opened.Close()) }()
	on, err := connect(ctx, g.DSN, g.Address, &opened)
	if err != nil {
		return err
	}
	seller := all[i].open(ctx, on)
	crowd{seller, []string{g.SKU}, saleBuyers, 1}.run(ctx, func(r receipt) bool {
		// Encode writes once, so the line is whole even if the process is killed.
		err := json.NewEncoder(receipts).Encode(r)
		if r.Answer == failed && err == nil {
			err = order.Pause(ctx, 20*time.Millisecond)
		}
		return r.Answer != refused && err == nil
	})
	return seller.Close()
}

// crowd is a crowd of buyers. Each orders again as soon as it has an answer: one unit each of some random SKUs.
type crowd struct {
	seller        Seller
	skus          []string
	buyers, lines int // lines: SKUs in an order
}

// receipt is a buyer's record of an answer.
type receipt struct {
	Order, Answer, Reason string // Reason: of a failure
	Asked, Answered       time.Time
}

const sold, refused, failed = "sold", "refused", "failed" // the answers

// run returns when all buyers have left. The buyers call stays concurrently; a buyer leaves when stays returns false.
func (c crowd) run(ctx context.Context, stays func(receipt) bool) {
	var all sync.WaitGroup
	for i := range c.buyers {
		all.Go(func() {
			for ctx.Err() == nil && stays(c.buy(ctx, fmt.Sprint("buyer-", i))) {
			}
		})
	}
	all.Wait()
}

func (c crowd) buy(ctx context.Context, buyer string) receipt {
	o := Order{ID: order.NewID(), Buyer: buyer}
	for len(o.SKUs) < c.lines {
		if sku := c.skus[rand.IntN(len(c.skus))]; !slices.Contains(o.SKUs, sku) {
			o.SKUs = append(o.SKUs, sku)
		}
	}
	slices.Sort(o.SKUs)
	r := receipt{Order: o.ID, Answer: sold, Asked: time.Now()}
	err := c.seller.Buy(ctx, o)
	r.Answered = time.Now()
	if errors.Is(err, errSoldOut) {
		r.Answer = refused
	} else if err != nil {
		r.Answer, r.Reason = failed, err.Error()
	}
	return r
}

// Outcome is the outcome of a sale with a fault, by the buyers' receipts and the rows of their orders alone.
type Outcome struct {
	Fault        string   `json:"fault"`
	Supplied     int64    `json:"supplied_units"`
	Acknowledged int      `json:"acknowledged_orders"`
	Lost         int      `json:"lost_orders"`         // acknowledged, without a row
	Oversold     int64    `json:"oversold_units"`      // in orders that are acknowledged or have a row, above the supply
	Undersold    int64    `json:"undersold_units"`     // for sale when a buyer was told sold out
	Left         int64    `json:"left_units"`          // of these, still unsold in the end
	StandsStill  bool     `json:"stands_still"`        // no order after the fault, and not all buyers were told sold out
	Seconds      *float64 `json:"sells_again_seconds"` // the longest time without an order, from the fault on; nil: no order since
	Verdict      string   `json:"verdict"`             // nothing, or what is wrong
	Operator     string   `json:"operator_does"`       // what a person has to do afterwards
}

// unharmed is the verdict of a sale in which nothing went wrong, and the task of its operator.
const unharmed = "nothing"

// verdictOf says what went wrong in any of the outcomes, and what an operator has to do. A supervisor
// starts the program again by itself.
func verdictOf(d Design, outcomes ...Outcome) (verdict, task string) {
	recount := "count the units in orders, and put the others up for sale again"
	if d.Redis {
		recount = "stop the sale, count the units in orders, and load Redis again"
	}
	var words, tasks []string
	for _, wrong := range []struct {
		word, task string
		in         func(Outcome) bool
	}{
		{"lost", "find the buyers of lost orders in web servers' logs", func(o Outcome) bool { return o.Lost > 0 }},
		{"oversold", "cancel orders and give money back", func(o Outcome) bool { return o.Oversold > 0 }},
		{"stands still", "", func(o Outcome) bool { return o.StandsStill }},
		{"undersold", "", func(o Outcome) bool { return o.Undersold > 0 }},
		{"", recount, func(o Outcome) bool { return o.Left > 0 || o.StandsStill }},
	} {
		if slices.ContainsFunc(outcomes, wrong.in) {
			words, tasks = append(words, wrong.word), append(tasks, wrong.task)
		}
	}
	joined := func(texts []string, by string) string {
		texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
		return cmp.Or(strings.Join(texts, by), unharmed)
	}
	return joined(words, ", "), joined(tasks, "; ")
}

// judge compares receipts with rows: the IDs of the orders.
func (s *sale) judge(rows []string) Outcome {
	o, units, written := Outcome{Fault: s.fault.name, Supplied: s.supply}, int64(len(rows)), map[string]bool{}
	for _, id := range rows {
		written[id] = true
	}
	if s.left.Load() == saleBuyers {
		o.Left = max(0, s.supply-units)
	}
	slices.SortFunc(s.receipts, func(a, b receipt) int { return a.Answered.Compare(b.Answered) }) // buyers write at once
	var last time.Time
	firstRefusal := time.Now()                            // later than all receipts
	gap, again, late := time.Duration(0), false, int64(0) // late: sold to buyers who asked after the first refusal
	for _, r := range s.receipts {
		if r.Answer == refused && r.Answered.Before(firstRefusal) {
			firstRefusal = r.Answered
		}
		if r.Answer != sold {
			continue
		}
		o.Acknowledged++
		if !written[r.Order] {
			o.Lost++
		} else if r.Asked.After(firstRefusal) {
			late++
		}
		if r.Answered.After(s.broken) && !last.IsZero() {
			gap = max(gap, r.Answered.Sub(last))
		}
		again, last = again || r.Asked.After(s.healed), r.Answered
	}
	o.Oversold = max(0, units+int64(o.Lost)-s.supply)
	o.Undersold = min(o.Left+late, max(0, s.supply-units+late))
	if seconds := gap.Seconds(); again {
		o.Seconds = &seconds
	}
	o.StandsStill = !again && s.left.Load() < saleBuyers
	o.Verdict, o.Operator = verdictOf(s.design, o)
	return o
}

// rows returns the IDs of the orders of the SKU, of one unit each.
func (s *sale) rows(ctx context.Context) (ids []string, err error) {
	var list []byte
	err = s.on.DB.QueryRowContext(ctx, `SELECT COALESCE(JSON_ARRAYAGG(idempotency_key), '[]')
		FROM orders JOIN order_lines ON order_id = id WHERE sku = ?`, s.sku).Scan(&list)
	if err == nil {
		err = json.Unmarshal(list, &ids)
	}
	return ids, err
}
