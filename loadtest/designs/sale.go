package designs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/testserver"
)

const (
	saleBuyers = 64               // buyers of the one SKU
	standstill = 8 * time.Second  // without an answer: the seller stands still
	saleLimit  = 20 * time.Second // for the part of a sale before a fault, and for the part after it
	stopLimit  = 30 * time.Second // for a seller that is asked to end: its writer may be behind
	tries      = 10               // of a design that is known to be wrong
)

// ground is where designs are broken.
type ground struct {
	Servers                         // this Redis is emptied
	sentinel *testserver.RedisGroup // for the failover; without it, none takes place
	replaced Servers                // with its Redis
	program  []string               // the command line of a seller's process, which calls sell
}

// fault is what is broken when part of the units are sold.
type fault struct {
	name  string
	redis bool // it is for designs where Redis decides, and takes place on replaced
	does  func(*sale, context.Context) error
}

func allFaults() []fault {
	return []fault{
		{"kill -9", false, (*sale).restart},
		{"kill -9 at the end", false, (*sale).restartAtTheEnd},
		{"FLUSHALL", false, (*sale).flushRedis},
		{"failover", true, (*sale).failOver},
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
		if try == tries || !d.Wrong || verdictOf(outcomes...) != unharmed {
			return outcomes, try, nil
		}
	}
}

// sale is one sale with a fault.
type sale struct {
	goods
	Servers
	program  []string
	sentinel *testserver.RedisGroup
	running  *process

	receipts []receipt
	sold     int64
	left     int // buyers of the running process who were told that the SKU is sold out

	broken, healed time.Time // when the fault began, and when the seller could go on
}

// breakBy holds one sale:
//
//	units -> seller -> fault -> all buyers were told that the SKU is sold out -> no more rows -> stopped -> verdict
func (g *ground) breakBy(ctx context.Context, d Design, f fault, supply int64) (o Outcome, err error) {
	s := &sale{Servers: g.Servers, program: g.program, sentinel: g.sentinel}
	if f.redis {
		s.Servers = g.replaced
		defer func() { err = errors.Join(err, g.sentinel.Restore(context.WithoutCancel(ctx))) }()
	}
	s.goods = goods{d.Name, s.DSN, s.Address, fmt.Sprintf("broken-%d", time.Now().UnixNano()), supply}
	if err = s.Redis.FlushAll(ctx).Err(); err == nil {
		err = d.putUpForSale(ctx, s.Servers, map[string]int64{s.SKU: supply})
	}
	if err == nil {
		s.running, err = s.start(ctx, s.program)
	}
	if err != nil {
		return o, err
	}
	defer func() { _ = s.end((*process).kill) }() // unless it has been stopped
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
	rows, err := s.finish(ctx)
	if err != nil {
		return o, err
	}
	o = s.judge(rows)
	o.Fault, o.Operator = f.name, o.operator(d)
	return o, nil
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
				return fmt.Errorf("the seller ended by itself: %s", s.running.log)
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

// end ends the process, and takes its last receipts.
func (s *sale) end(how func(*process) error) error {
	err := how(s.running)
	for r := range s.running.receipts {
		s.take(r)
	}
	return err
}

// finish waits until no more rows come, since a writer may be behind, stops the seller, and returns the IDs of the orders.
func (s *sale) finish(ctx context.Context) (rows map[string]bool, err error) {
	for before, began := -1, time.Now(); len(rows) != before && time.Since(began) < saleLimit && err == nil; {
		before = len(rows)
		if err = order.Pause(ctx, time.Second); err == nil {
			rows, err = s.rows(ctx)
		}
	}
	if err == nil {
		err = s.end((*process).stop)
	}
	if err == nil && s.running.killed {
		err = fmt.Errorf("the seller did not end within %v: %s", stopLimit, s.running.log)
	}
	if err != nil {
		return nil, err
	}
	return s.rows(ctx)
}

// restart kills the seller's process and starts it anew.
func (s *sale) restart(ctx context.Context) (err error) {
	if err := s.end((*process).kill); err != nil {
		return err
	}
	s.left = 0
	s.running, err = s.start(ctx, s.program)
	return err
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
func (s *sale) flushRedis(ctx context.Context) error { return s.Redis.FlushAll(ctx).Err() }

// failOver cuts the replicas off, lets a quarter of the units be sold on the master that only it knows of, and replaces
// the master by a replica.
func (s *sale) failOver(ctx context.Context) error {
	if err := s.sentinel.CutReplicas(ctx); err != nil {
		return err
	}
	if err := s.sellUnits(ctx, s.sold+s.Supply/4); err != nil {
		return err
	}
	s.broken = time.Now()
	return s.sentinel.FailOver(ctx)
}

// goods is what the parent tells a seller's process. It goes by the environment: addresses may hold passwords.
type goods struct {
	Design, DatabaseDSN, RedisAddress, SKU string
	Supply                                 int64
}

const goodsVariable = "DESIGNS_GOODS"

// sell is the whole program of a seller's process. Buyers ask the design that the parent chose, again and again, and
// write a receipt of each answer before they ask again. A buyer who is told that the SKU is sold out leaves. sell ends
// when the parent closes stdin or has died.
func sell(ctx context.Context, all []Design, stdin io.Reader, receipts io.Writer) (err error) {
	var g goods
	if err := json.Unmarshal([]byte(os.Getenv(goodsVariable)), &g); err != nil {
		return fmt.Errorf("%s: %w", goodsVariable, err)
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
	on, disconnect, err := connect(ctx, g.DatabaseDSN, g.RedisAddress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disconnect()) }()
	seller, err := all[i].open(ctx, on)
	if err != nil {
		return fmt.Errorf("open %s: %w", g.Design, err)
	}
	crowd{seller, []string{g.SKU}, 1, func(r receipt) bool {
		// One write, and so a whole line, even if the process is killed.
		err := json.NewEncoder(receipts).Encode(r)
		if r.Answer == failed && err == nil {
			err = order.Pause(ctx, 20*time.Millisecond)
		}
		return r.Answer != refused && err == nil
	}}.run(ctx, saleBuyers)
	<-ctx.Done()
	return seller.Close()
}

// process is a seller in a process of its own.
type process struct {
	*os.Process
	receipts <-chan receipt // closed when the process has ended
	killed   bool           // so it has ended
	askToEnd context.CancelFunc
	log      *testserver.LogBuffer
}

// start starts a program that calls sell.
func (g goods) start(ctx context.Context, program []string) (*process, error) {
	text, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(ctx, program[0], program[1:]...) //nolint:gosec // this program itself
	receipts := make(chan receipt, 1<<16)                       // the seller never waits for the parent
	p := &process{receipts: receipts, askToEnd: cancel, log: new(testserver.LogBuffer)}
	cmd.Env, cmd.Stderr = append(os.Environ(), goodsVariable+"="+string(text)), p.log
	stdin, err := cmd.StdinPipe()
	cmd.Cancel, cmd.WaitDelay = func() error { return stdin.Close() }, stopLimit
	stdout, failed := cmd.StdoutPipe()
	if err = errors.Join(err, failed); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	p.Process = cmd.Process
	go func() {
		defer close(receipts)
		lines, r := json.NewDecoder(stdout), receipt{}
		for lines.Decode(&r) == nil {
			receipts <- r
			r = receipt{}
		}
		_ = cmd.Wait()
		p.killed = !cmd.ProcessState.Exited()
	}()
	return p, nil
}

// kill ends the process, as a crash does.
func (p *process) kill() error {
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// stop asks the process to end. After a limit it is killed.
func (p *process) stop() error {
	p.askToEnd()
	return nil
}
