package designs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/shops"
)

const (
	saleBuyers = 64               // buyers of the one SKU
	standstill = 8 * time.Second  // without an answer: the seller stands still
	saleLimit  = 20 * time.Second // for the part of a sale before a fault, and for the part after it
	stopLimit  = time.Minute      // for a seller that is asked to end: its writer may be behind
	tries      = 10               // of a design that is known to be wrong
)

// ground is where designs are broken.
type ground struct {
	one      Servers                // this Redis is emptied
	group    Servers                // with a Redis that Sentinels replace
	sentinel *testserver.RedisGroup // of the group; without it, no failover takes place
	program  []string               // the command line of a seller's process, which calls sell
}

// fault is what is broken when a third of the units are sold.
type fault struct {
	name, about string
	redis       bool // it is for designs where Redis decides, and takes place on the group
	does        func(*sale, context.Context) error
}

func allFaults() []fault {
	return []fault{
		{"kill -9", "the process is killed and started again", false, (*sale).restart},
		{"kill -9 at the end", "so it is when the first buyer has been told that the SKU is sold out", false,
			(*sale).restartAtTheEnd},
		{"FLUSHALL", "Redis forgets everything, as without persistence in a restart", false, (*sale).flushRedis},
		{"failover", "Redis is replaced by a replica that was cut off before; where Redis decides", true, (*sale).failOver},
	}
}

// breakAll sells by a design once for each fault, which it meets in the middle of the sale. A design that is known to be
// wrong is tried again if it shows nothing. It returns the outcomes of the last try.
func (g *ground) breakAll(ctx context.Context, d Design, supply int64) (outcomes []Outcome, try int, err error) {
	for try = 1; ; try++ {
		outcomes = nil
		for _, f := range allFaults() {
			if f.redis && (!d.Redis || g.sentinel == nil) {
				continue
			}
			o, err := g.breakBy(ctx, d, f, supply)
			if err != nil {
				return nil, try, fmt.Errorf("%s, %s: %w", d.Name, f.name, err)
			}
			outcomes = append(outcomes, o)
		}
		if verdict, _ := verdictOf(outcomes...); try == tries || !d.Wrong || verdict != unharmed {
			return outcomes, try, nil
		}
	}
}

// sale is one sale with a fault.
type sale struct {
	*ground
	design Design
	fault  fault
	on     Servers
	sku    string
	supply int64

	running  *process
	receipts []receipt
	sold     int64
	left     int // buyers of the running process who were told that the SKU is sold out

	broken, healed time.Time // when the fault began, and when the seller could go on
}

// breakBy holds one sale:
//
//	units -> seller -> fault -> all buyers were told that the SKU is sold out -> seller has written all -> verdict
func (g *ground) breakBy(ctx context.Context, d Design, f fault, supply int64) (o Outcome, err error) {
	sku := fmt.Sprintf("broken-%d", time.Now().UnixNano())
	s := &sale{ground: g, design: d, fault: f, on: g.one, sku: sku, supply: supply}
	if f.redis {
		s.on = g.group
		defer func() { err = errors.Join(err, g.sentinel.Restore(context.WithoutCancel(ctx))) }()
	}
	if err := s.on.Redis.FlushAll(ctx).Err(); err != nil {
		return o, err
	}
	if err := d.putUpForSale(ctx, s.on, map[string]int64{sku: supply}); err != nil {
		return o, err
	}
	if err := s.start(ctx); err != nil {
		return o, err
	}
	defer func() { _ = s.end(s.running.Process.Kill) }() // unless it has ended
	if err := s.sellUnits(ctx, supply/3); err != nil {
		return o, err
	}
	s.broken = time.Now()
	if err := f.does(s, ctx); err != nil {
		return o, err
	}
	s.healed = time.Now()
	// A seller that has forgotten what it sold may sell for ever.
	if err := s.collect(ctx, func() bool { return s.left == saleBuyers || s.sold > 2*supply }); err != nil {
		return o, err
	}
	if err := s.stop(); err != nil {
		return o, err
	}
	rows, err := s.rows(ctx)
	return s.judge(rows), err
}

// restart kills the seller's process and starts it anew.
func (s *sale) restart(ctx context.Context) error {
	if err := s.end(s.running.Process.Kill); err != nil {
		return err
	}
	s.left = 0
	return s.start(ctx)
}

// restartAtTheEnd kills the seller when it has told the first buyer that the SKU is sold out. Orders that are not
// committed roll back, and their units are for sale again.
func (s *sale) restartAtTheEnd(ctx context.Context) error {
	if err := s.collect(ctx, func() bool { return s.left > 0 }); err != nil {
		return err
	}
	s.broken = time.Now()
	return s.restart(ctx)
}

// flushRedis is the operator who types FLUSHALL, or a Redis without persistence that was started again.
func (s *sale) flushRedis(ctx context.Context) error { return s.on.Redis.FlushAll(ctx).Err() }

// failOver cuts the replicas off, lets a quarter of the units be sold on the master that only it knows of, and replaces
// the master by a replica.
func (s *sale) failOver(ctx context.Context) error {
	if err := s.sentinel.CutReplicas(ctx); err != nil {
		return err
	}
	if err := s.sellUnits(ctx, s.sold+s.supply/4); err != nil {
		return err
	}
	s.broken = time.Now()
	return s.sentinel.FailOver(ctx)
}

// sellUnits returns when so many orders have been acknowledged since the beginning.
func (s *sale) sellUnits(ctx context.Context, units int64) error {
	err := s.collect(ctx, func() bool { return s.sold >= units })
	if err == nil && s.sold < units {
		err = fmt.Errorf("%d units were sold before the fault, want %d; the last answer: %+v",
			s.sold, units, s.receipts[max(0, len(s.receipts)-1):])
	}
	return err
}

// collect takes receipts until there are enough, the seller stands still, or the limit has passed.
func (s *sale) collect(ctx context.Context, enough func() bool) error {
	over, heard := time.Now().Add(saleLimit), time.Now()
	for !enough() {
		left := min(time.Until(over), time.Until(heard.Add(standstill)))
		if left <= 0 {
			return nil
		}
		select {
		case r, ok := <-s.running.receipts:
			if !ok {
				return fmt.Errorf("the seller ended by itself: %s", &s.running.log)
			}
			if s.take(r); r.Answer != failed {
				heard = time.Now()
			}
		case <-time.After(left):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *sale) take(r receipt) {
	s.receipts = append(s.receipts, r)
	switch r.Answer {
	case sold:
		s.sold++
	case refused:
		s.left++
	}
}

func (s *sale) start(ctx context.Context) (err error) {
	s.running, err = startSeller(ctx, s.program, goods{s.design.Name, s.on.DSN, s.on.Address, s.sku})
	return err
}

// stop asks the process to end, which it does when it has written all.
func (s *sale) stop() error {
	limit := time.AfterFunc(stopLimit, func() { _ = s.running.Process.Kill() })
	defer limit.Stop()
	err := s.end(s.running.stdin.Close)
	if err == nil && !s.running.ProcessState.Exited() {
		err = fmt.Errorf("the seller did not end within %v: %s", stopLimit, &s.running.log)
	}
	return err
}

// end ends the process, and takes its last receipts.
func (s *sale) end(how func() error) error {
	err := how()
	for r := range s.running.receipts {
		s.take(r)
	}
	return err
}

// process is a seller in a process of its own. It ends when its stdin is closed: at the latest with its parent.
type process struct {
	*exec.Cmd
	stdin    io.WriteCloser
	receipts chan receipt // closed when the process has ended
	log      testserver.LogBuffer
}

// goods is what a seller's process reads from stdin: addresses may hold passwords.
type goods struct{ Design, DSN, Address, SKU string }

// startSeller starts a program that calls sell.
func startSeller(ctx context.Context, program []string, g goods) (*process, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program[0], program[1:]...) //nolint:gosec // this program itself
	p := &process{Cmd: cmd, receipts: make(chan receipt, 1<<16)}                       // the seller never waits for the parent
	cmd.Stderr = &p.log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_ = json.NewEncoder(p.stdin).Encode(g) // if it fails, the process has ended, which collect reports
	go func() {
		defer close(p.receipts)
		for lines := json.NewDecoder(stdout); ; {
			var r receipt
			if lines.Decode(&r) != nil {
				break
			}
			p.receipts <- r
		}
		_ = cmd.Wait()
	}()
	return p, nil
}

// sell is the whole program of a seller's process. Buyers ask the design that the parent chose, again and again, and
// write a receipt of each answer before they ask again. A buyer who is told that the SKU is sold out leaves.
func sell(ctx context.Context, all []Design, stdin io.Reader, receipts io.Writer) (err error) {
	var g goods
	if err := json.NewDecoder(stdin).Decode(&g); err != nil {
		return fmt.Errorf("read what to sell: %w", err)
	}
	i := slices.IndexFunc(all, func(d Design) bool { return d.Name == g.Design })
	if i < 0 {
		return fmt.Errorf("there is no design %q", g.Design)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		stop()
	}()
	var opened shops.Undo
	defer func() { err = errors.Join(err, opened.Close()) }()
	on, err := connect(ctx, g.DSN, g.Address, &opened)
	if err != nil {
		return err
	}
	seller, err := all[i].open(ctx, on)
	if err != nil {
		return fmt.Errorf("open %s: %w", g.Design, err)
	}
	crowd{seller, []string{g.SKU}, saleBuyers, 1}.run(ctx, func(r receipt) bool {
		// One write, and so a whole line, even if the process is killed.
		err := json.NewEncoder(receipts).Encode(r)
		if r.Answer == failed && err == nil {
			err = order.Pause(ctx, 20*time.Millisecond)
		}
		return r.Answer != refused && err == nil
	})
	<-ctx.Done()
	return seller.Close()
}
