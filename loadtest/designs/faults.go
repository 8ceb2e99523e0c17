package designs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/shop/internal/testserver"
)

const (
	saleBuyers = 64               // buyers of the one SKU
	standstill = 8 * time.Second  // without an answer: the seller stands still
	saleLimit  = 20 * time.Second // for the part of a sale before a fault, and for the part after it
	tries      = 10               // of a design that is known to be wrong
)

// Ground is where designs are broken.
type Ground struct {
	Servers
	RedisAddr string                 // of Servers.Redis, which is emptied
	Sentinel  *testserver.RedisGroup // for the failover; without it, none takes place
	Program   []string               // the command line of a seller's process, which calls Sell
}

// fault is what is broken when part of the units are sold.
type fault struct {
	name  string
	redis bool // it is for designs where Redis decides, and takes place on Sentinel
	does  func(ctx context.Context, t *trial) error
}

func allFaults() []fault {
	return []fault{
		{name: "kill -9", does: killSeller},
		{name: "kill -9 at the end", does: killAtTheEnd},
		{name: "FLUSHALL", does: flushRedis},
		{name: "failover", redis: true, does: failOver},
	}
}

// Break sells by a design once for each fault, which it meets in the middle of the sale. A design that is known to be
// wrong is tried again if it shows nothing. It returns the outcomes of the last try.
func (g *Ground) Break(ctx context.Context, d Design, supply int64) (outcomes []Outcome, try int, err error) {
	for try = 1; ; try++ {
		outcomes = nil
		for _, f := range allFaults() {
			if f.redis && (!d.Redis || g.Sentinel == nil) {
				continue
			}
			o, err := g.breakBy(ctx, d, f, supply)
			if err != nil {
				return nil, try, fmt.Errorf("%s, %s: %w", d.Name, f.name, err)
			}
			outcomes = append(outcomes, o)
		}
		if try == tries || !d.Wrong || verdictOf(outcomes...) != unharmed {
			return outcomes, try, nil
		}
	}
}

// trial is one sale with a fault.
type trial struct {
	*Ground
	sale
	on      Servers // as the seller reaches them
	running *process
	supply  int64

	receipts []receipt
	sold     int64
	left     int // buyers of the running process who were told that the SKU is sold out

	broken, healed time.Time // when the fault began, and when the seller could go on
}

// breakBy holds one sale:
//
//	units -> seller -> fault -> all buyers were told that the SKU is sold out -> no more rows -> stopped -> verdict
func (g *Ground) breakBy(ctx context.Context, d Design, f fault, supply int64) (o Outcome, err error) {
	t := &trial{Ground: g, on: g.Servers, supply: supply}
	t.sale = sale{
		Design: d.Name, DSN: g.DSN, Redis: g.RedisAddr, Buyers: saleBuyers,
		SKU: fmt.Sprintf("broken-%d", time.Now().UnixNano()),
	}
	if f.redis {
		t.Redis = g.Sentinel.URL
		var disconnect func() error
		if t.on, disconnect, err = connect(ctx, g.DSN, t.Redis); err != nil {
			return o, err
		}
		defer func() { err = errors.Join(err, disconnect(), g.Sentinel.Restore(context.WithoutCancel(ctx))) }()
	}
	if err := t.prepare(ctx, d); err != nil {
		return o, err
	}
	if t.running, err = t.start(ctx, g.Program); err != nil {
		return o, err
	}
	defer func() {
		_, failed := t.running.end() // unless it has been stopped
		err = errors.Join(err, failed)
	}()
	if err := t.sellUnits(ctx, supply/3); err != nil {
		return o, err
	}
	t.broken = time.Now()
	if err := f.does(ctx, t); err != nil {
		return o, err
	}
	t.healed = time.Now()
	// A seller that has forgotten what it sold may sell for ever.
	if err := t.collect(ctx, func() bool { return t.left == saleBuyers || t.sold > 2*supply }); err != nil {
		return o, err
	}
	rows, err := t.finish(ctx)
	if err != nil {
		return o, err
	}
	o = t.judge(rows)
	o.Fault, o.Operator = f.name, o.operator(d)
	return o, nil
}

// prepare puts a SKU up for sale, with nothing of earlier sales in Redis.
func (t *trial) prepare(ctx context.Context, d Design) error {
	if err := t.on.Redis.FlushAll(ctx).Err(); err != nil {
		return err
	}
	if err := putUpForSale(ctx, t.on.DB, map[string]int64{t.SKU: t.supply}); err != nil {
		return err
	}
	return d.Prepare(ctx, t.on, map[string]int64{t.SKU: t.supply})
}

// sellUnits returns when so many orders have been acknowledged since the beginning.
func (t *trial) sellUnits(ctx context.Context, units int64) error {
	err := t.collect(ctx, func() bool { return t.sold >= units })
	if err == nil && t.sold < units {
		err = fmt.Errorf("it sold %d units before the fault, want %d: %s", t.sold, units, t.lastFailure())
	}
	return err
}

// collect takes receipts until there are enough, the seller stands still, or the limit has passed.
func (t *trial) collect(ctx context.Context, enough func() bool) error {
	over, silent := time.NewTimer(saleLimit), time.NewTimer(standstill)
	defer over.Stop()
	defer silent.Stop()
	for !enough() {
		select {
		case r, ok := <-t.running.receipts:
			if !ok {
				return fmt.Errorf("the seller ended by itself: %s", t.running.log)
			}
			if t.take(r); r.answer != failed {
				silent.Reset(standstill)
			}
		case <-silent.C:
			return nil
		case <-over.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (t *trial) take(receipts ...receipt) {
	t.receipts = append(t.receipts, receipts...)
	for _, r := range receipts {
		switch r.answer {
		case sold:
			t.sold++
		case refused:
			t.left++
		}
	}
}

func (t *trial) lastFailure() string {
	for _, r := range slices.Backward(t.receipts) {
		if r.answer == failed {
			return r.reason
		}
	}
	return "no error"
}

// finish waits until no more rows come, since a writer may be behind, stops the seller, and returns the units of each
// order.
func (t *trial) finish(ctx context.Context) (rows map[string]int64, err error) {
	const quiet = 2 * time.Second
	began, changed, before := time.Now(), time.Now(), -1
	for time.Since(changed) < quiet && time.Since(began) < saleLimit {
		if rows, err = t.rows(ctx); err != nil {
			return nil, err
		}
		if o := t.judge(rows); o.Lost == 0 && int64(len(rows)) >= t.supply {
			break
		}
		if len(rows) != before {
			changed, before = time.Now(), len(rows)
		}
		time.Sleep(50 * time.Millisecond)
	}
	last, err := t.running.stop()
	if t.take(last...); err != nil {
		return nil, err
	}
	return t.rows(ctx)
}

// killSeller kills the seller's process and starts it anew.
func killSeller(ctx context.Context, t *trial) error {
	last, err := t.running.end()
	if t.take(last...); err != nil {
		return err
	}
	next, err := t.start(ctx, t.Program)
	if err == nil {
		t.running, t.left = next, 0
	}
	return err
}

// killAtTheEnd kills the seller when it has told the first buyer that the SKU is sold out. Orders that are not
// committed roll back, and their units are for sale again.
func killAtTheEnd(ctx context.Context, t *trial) error {
	if err := t.collect(ctx, func() bool { return t.left > 0 }); err != nil {
		return err
	}
	t.broken = time.Now()
	return killSeller(ctx, t)
}

// flushRedis is the operator who types FLUSHALL, or a Redis without persistence that was started again.
func flushRedis(ctx context.Context, t *trial) error { return t.on.Redis.FlushAll(ctx).Err() }

// failOver cuts the replicas off, lets a quarter of the units be sold on the master that only it knows of, and replaces
// the master by a replica.
func failOver(ctx context.Context, t *trial) error {
	if err := t.Sentinel.CutReplicas(ctx); err != nil {
		return err
	}
	if err := t.sellUnits(ctx, t.sold+t.supply/4); err != nil {
		return err
	}
	t.broken = time.Now()
	return t.Sentinel.FailOver(ctx)
}
