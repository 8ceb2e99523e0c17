package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/shop/loadtest/faults/checks"
	"example.com/shop/loadtest/faults/fault"
	"example.com/shop/loadtest/faults/history"
	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/faults/traffic"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

const (
	before  = 400 * time.Millisecond // of traffic, at most, before the fault
	after   = 300 * time.Millisecond // of traffic when all shops sell again
	waitFor = time.Minute            // for a shop that does not sell
	expiry  = 10 * time.Second       // the longest until the last orders have expired
)

// runner runs histories, one after the other. It keeps a system for as long as the next history can use it.
type runner struct {
	dir     string        // of programs
	report  func(string)  // of progress
	mistake control       // built into what is run; the zero value for none
	program shops.Program // that was built last
	system  *system.System
	variant variant // of the program and the system
	begun   int     // histories
}

// variant is what a fault needs.
type variant struct {
	on               system.Kind
	movable, patient bool
	strategies       string // of the shops, with commas
}

// withRunner calls do with a new runner, and then stops its system and removes its folder.
func withRunner(report func(string), do func(*runner) error) error {
	dir, err := os.MkdirTemp("", "shop-faults-")
	if err != nil {
		return err
	}
	r := &runner{dir: dir, report: report}
	err = do(r)
	return errors.Join(err, r.close(), os.RemoveAll(dir))
}

// close stops the system.
func (r *runner) close() error {
	s := r.system
	if r.system = nil; s == nil {
		return nil
	}
	return s.Close()
}

// open builds the shop and starts a system, unless those of the last history will do.
func (r *runner) open(ctx context.Context, v variant) error {
	if v != r.variant {
		if err := r.close(); err != nil {
			return err
		}
	}
	if r.program.File == "" || v.movable != r.variant.movable {
		r.report("building the shop")
		if err := r.build(ctx, v); err != nil {
			return err
		}
	}
	r.variant = v
	if r.system != nil {
		return nil
	}
	r.report("starting three shops on " + string(v.on))
	s, err := system.Open(ctx, v.on, r.program, strings.Split(v.strategies, ","), v.patient)
	r.system = s
	return err
}

func (r *runner) build(ctx context.Context, v variant) error {
	edits := slices.Clone(r.mistake.edits)
	if v.movable {
		edits = append(edits, movableClock()...)
	}
	dir, err := os.MkdirTemp(r.dir, "build")
	if err != nil {
		return err
	}
	changed, err := change(ctx, dir, edits)
	if err != nil {
		return err
	}
	r.program = shops.Program{File: filepath.Join(dir, "shop"), Keys: shopclient.NewKeys()}
	return shops.Build(ctx, "", "cmd/shop", r.program.File, "-overlay", changed)
}

// runHistory runs one history of a fault. The seed fixes the random choices, not their timing.
func (r *runner) runHistory(ctx context.Context, f fault.Fault, on system.Kind, seed uint64) (*history.History, error) {
	if len(f.Strategies) == 0 {
		f.Strategies = []string{"lanes", "redis", "batch"}
	}
	v := variant{on: on, movable: f.MovesClock, patient: f.Unnoticed, strategies: strings.Join(f.Strategies, ",")}
	if err := r.open(ctx, v); err != nil {
		return nil, err
	}
	r.begun++
	name := fmt.Sprintf("h%d-%d", os.Getpid(), r.begun)
	skus := history.SKUs{Deep: name + "-deep", Hot: name + "-hot", Cold: name + "-cold", Few: name + "-few"}
	h := &history.History{
		Fault: f.Name, Seed: seed, Servers: string(on), SKUs: skus, Supplied: traffic.Supply(skus),
		ClocksApart: f.MovesClock, Unnoticed: f.Unnoticed, Strategies: f.Strategies,
		LockAlone: f.LockAlone && on != system.Embedded, // a batch waits for its leases while it is SQLite's only writer
	}
	err := r.supply(ctx, h)
	if err == nil {
		err = r.breakUnderLoad(ctx, f, h)
	}
	for end := time.Now().Add(expiry); err == nil; shopclient.Pause(ctx, 200*time.Millisecond) {
		err = h.Read(ctx, r.system.DB)
		if !h.AnyPending() || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s, seed %d: %w", f.Name, seed, err), r.close())
	}
	if err = r.audit(ctx, h); err != nil {
		return nil, errors.Join(err, r.close())
	}
	h.Violations = checks.Run(h)
	if len(h.Violations) > 0 || f.Loses { // the system may be left in any state
		return h, r.close()
	}
	if err := r.system.AwaitReady(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), r.close())
		}
		h.Violations = append(h.Violations, history.Violation{Check: "recovery", Detail: err.Error()})
		return h, r.close()
	}
	return h, nil
}

func (r *runner) supply(ctx context.Context, h *history.History) error {
	conns := shopclient.NewConnections(1, 10*time.Second)
	defer conns.CloseIdleConnections()
	operator := r.system.Shops[0].Client(conns)
	for sku, units := range h.Supplied {
		if err := operator.Create(ctx, sku, units); err != nil {
			return err
		}
	}
	return operator.Limit(ctx, h.SKUs.Few, traffic.FewForEach)
}

// audit asks a shop for the payments to be refunded and for its own audit: what that has found, and where it has other levels
// than the rows.
func (r *runner) audit(ctx context.Context, h *history.History) error {
	conns := shopclient.NewConnections(1, 10*time.Second)
	defer conns.CloseIdleConnections()
	operator := r.system.Shops[0].Client(conns)
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
			h.Findings = append(h.Findings, fmt.Sprintf("%s has %+v, and the audit found %+v", sku, row, found))
		}
	}
	return ctx.Err()
}

// breakUnderLoad breaks the system and heals it while clients use it, and goes on until each shop sells again.
func (r *runner) breakUnderLoad(ctx context.Context, f fault.Fault, h *history.History) error {
	t := &traffic.Traffic{History: h, Buyers: cmp.Or(f.Buyers, 14), Seed: h.Seed, Patient: f.Unnoticed, ForgetKey: r.mistake.forgetKey}
	for _, shop := range r.system.Shops {
		t.Shops = append(t.Shops, shop.Client)
	}
	target := &fault.Target{System: r.system, History: h, Dice: rand.New(rand.NewPCG(h.Seed, 0xfa017))}
	h.Begin()
	end := t.Start(ctx)
	sold, err := await(ctx, h, 0)
	if err == nil && sold == 0 {
		err = fmt.Errorf("before the fault, not all shops have sold within %v", waitFor)
	}
	if err == nil {
		shopclient.Pause(ctx, time.Duration(target.Dice.Int64N(int64(before))))
		h.Broken = h.Now()
		err = f.Break(ctx, target)
		h.Healed = h.Now()
	}
	if err == nil {
		_, err = await(ctx, h, h.Healed)
		shopclient.Pause(ctx, after)
	}
	h.Ended = h.Now()
	end()
	h.Commits = int(target.Commits.Load())
	h.End(system.Instances)
	return err
}

// await returns when each shop has sold something that it was asked for after that time; 0 if one did not within waitFor.
func await(ctx context.Context, h *history.History, since time.Duration) (at time.Duration, err error) {
	for end := time.Now().Add(waitFor); at == 0 && ctx.Err() == nil && time.Now().Before(end); shopclient.Pause(ctx, 5*time.Millisecond) {
		at = h.SoldSince(since, system.Instances)
	}
	return at, ctx.Err()
}
