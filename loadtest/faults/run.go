package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/shop/loadtest/faults/checks"
	"example.com/shop/loadtest/faults/history"
	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/faults/traffic"
	"example.com/shop/loadtest/shopclient"
)

const (
	waitFor = time.Minute      // limit for a shop that does not sell
	expiry  = 10 * time.Second // limit until the last orders have expired
)

// runner runs histories, one after the other. It keeps a system as long as the next history can use it.
type runner struct {
	report     func(string) // reports progress
	mistake    control      // built into the shop; the zero value for none
	strategies [system.Instances]string
	buyers     int
	system     *system.System
	begun      int // number of histories
}

func newRunner(report func(string)) *runner {
	return &runner{report: report, strategies: [system.Instances]string{"lanes", "redis", "batch"}, buyers: 14}
}

// close stops the system.
func (r *runner) close() error {
	s := r.system
	if r.system = nil; s == nil {
		return nil
	}
	return s.Close()
}

// open builds the shop and starts a system, unless the next history can use the last one's.
func (r *runner) open(ctx context.Context, settings system.Settings) error {
	if r.system != nil && r.system.Settings == settings {
		return nil
	}
	if err := r.close(); err != nil {
		return err
	}
	r.report("starting three shops on " + string(settings.Kind))
	changed, err := sources(ctx, r.mistake.patch, settings.ClocksApart)
	if err == nil {
		r.system, err = system.Open(ctx, changed, settings)
	}
	return err
}

// runHistory runs one history of a fault. The seed fixes the random choices, but not their timing.
func (r *runner) runHistory(ctx context.Context, f fault, seed uint64) (*history.History, error) {
	settings := system.Settings{Kind: f.on, Strategies: r.strategies, Unnoticed: f.means == unnoticed, ClocksApart: f.means == clocksApart, Older: f.means == upgrades}
	if err := r.open(ctx, settings); err != nil {
		return nil, err
	}
	r.begun++
	name := fmt.Sprint("h", r.begun)
	skus := history.SKUs{Deep: name + "-deep", Hot: name + "-hot", Cold: name + "-cold", Few: name + "-few"}
	h := &history.History{
		Fault: f.name, Seed: seed, Settings: settings, Name: name, SKUs: skus, Answered: f.means == answered,
		LockAlone: f.means == lockAlone && f.on != system.Embedded, // in SQLite, a batch waits for its leases as the only writer
	}
	if err := r.run(ctx, f, h); err != nil {
		return nil, errors.Join(fmt.Errorf("%s, seed %d: %w", f.name, seed, err), r.close())
	}
	if len(h.Violations) > 0 || f.means == loses || f.means == upgrades { // the system may be left in any state
		return h, r.close()
	}
	return h, nil
}

// run breaks the system while clients use it, and checks the promises.
func (r *runner) run(ctx context.Context, f fault, h *history.History) error {
	conns := shopclient.NewConnections(1, 10*time.Second)
	defer conns.CloseIdleConnections()
	if err := traffic.Supply(ctx, r.system.Shops[0].Client(conns), h); err != nil {
		return err
	}
	dice := rand.New(rand.NewPCG(h.Seed, 0xfa017))
	target := &target{System: r.system, History: h, dice: dice, victim: r.system.Shops[dice.IntN(system.Instances)]}
	clients := &traffic.Traffic{History: h, Shops: r.system.Shops, Buyers: r.buyers, Unpaid: f.means == upgrades}
	h.Begin()
	end := clients.Start(ctx)
	err := target.breakAndHeal(ctx, f)
	h.Ended = h.Now()
	end()
	h.End()
	if err != nil {
		return err
	}
	pending := func(o history.Order) bool { return o.Status == "pending" }
	for end := time.Now().Add(expiry); ; shopclient.Pause(ctx, 200*time.Millisecond) {
		if err := h.Read(ctx, r.system.DB); err != nil {
			return err
		}
		if time.Now().After(end) || !slices.ContainsFunc(slices.Collect(maps.Values(h.Orders)), pending) {
			break
		}
	}
	audit(ctx, r.system.Shops[0].Client(conns), h)
	h.Violations = checks.Run(h)
	return ctx.Err()
}

// audit asks a shop for the payments to refund, and for its own audit. It collects the audit's findings, and the levels
// that differ from the rows.
func audit(ctx context.Context, operator *shopclient.Client, h *history.History) {
	refused, err := operator.Refused(ctx)
	if err != nil {
		h.Findings = append(h.Findings, err.Error())
	}
	h.Refused = map[string]bool{}
	for _, p := range refused {
		h.Refused[p.ID] = true
	}
	for sku, row := range h.Levels {
		audit, err := operator.Audit(ctx, sku)
		if err != nil {
			h.Findings = append(h.Findings, err.Error())
		}
		for _, d := range audit.Differences {
			h.Findings = append(h.Findings, fmt.Sprintf("%s %s (order %s)", d.Invariant, d.Detail, d.OrderID))
		}
		b := audit.Books
		if found := (history.Level{Supplied: b.Supplied, Available: b.Available, Reserved: b.Reserved, Sold: b.Sold}); found != row {
			h.Findings = append(h.Findings, fmt.Sprintf("%s has %+v, but the audit found %+v", sku, row, found))
		}
	}
}

// breakAndHeal breaks the system once each shop sells, heals it, and returns when each shop sells again.
func (t *target) breakAndHeal(ctx context.Context, f fault) (err error) {
	if t.Group != nil {
		t.primary, err = t.Group.Primary(ctx)
	} else if len(t.MySQL) > 0 {
		t.primary = t.MySQL[0]
	}
	if err != nil {
		return err
	}
	if !t.awaitSales(ctx, 0) {
		return cmp.Or(ctx.Err(), fmt.Errorf("before the fault, not all shops have sold within %v", waitFor))
	}
	shopclient.Pause(ctx, time.Duration(t.dice.IntN(400))*time.Millisecond)
	t.Broken = t.Now()
	for _, step := range f.steps {
		if err := step(ctx, t); err != nil {
			return err
		}
	}
	t.Healed = t.Now()
	t.awaitSales(ctx, t.Healed)
	shopclient.Pause(ctx, 300*time.Millisecond)
	return ctx.Err()
}

// awaitSales waits until each shop has sold to a request that was sent after the given time, and reports whether it has.
func (t *target) awaitSales(ctx context.Context, since time.Duration) bool {
	for end := time.Now().Add(waitFor); ctx.Err() == nil && time.Now().Before(end); shopclient.Pause(ctx, 10*time.Millisecond) {
		if t.SoldSince(since) > 0 {
			return true
		}
	}
	return false
}
