package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"example.com/shop/loadtest/sale/load"
	"example.com/shop/loadtest/sale/process"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/stats"
)

// hold runs a case and prints its table.
func (s *session) hold(ctx context.Context, c contest) error {
	result := &caseReport{Name: c.name, About: c.about, byDelay: c.byDelay, grows: len(c.waiting) > 0}
	work := s.loops
	if result.grows {
		work = s.grow
	}
	if err := work(ctx, c, result); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	s.progress.done()
	s.report.Cases = append(s.report.Cases, result)
	s.broken = s.broken || !result.right()
	result.print(s.out)
	return nil
}

// loops is every case but grow.
func (s *session) loops(ctx context.Context, c contest, into *caseReport) error {
	for _, who := range s.lineup {
		into.Rows = append(into.Rows, &row{Name: who.name, Buyers: c.buyers})
	}
	for n := range s.flags.Rounds {
		for _, i := range stats.Rotation(len(s.lineup), n) {
			who := s.lineup[i]
			s.progress.at(c.name, fmt.Sprintf("round %d of %d", n+1, s.flags.Rounds), who.name)
			r, err := s.measure(ctx, c, who, func(l load.Load) (load.Counts, error) {
				l.Buyers = c.buyers
				return l.Loop(ctx, s.flags.Time/5, s.flags.Time)
			})
			if err != nil {
				return fmt.Errorf("%s: %w", who.name, err)
			}
			s.progress.ended(r)
			into.Rows[i].Rounds = append(into.Rows[i].Rounds, r)
		}
	}
	return nil
}

// measure puts fresh SKUs up for sale, lets the work go and compares what the
// buyers were told with the shop's books.
func (s *session) measure(ctx context.Context, c contest, who contestant, work func(load.Load) (load.Counts, error)) (round, error) {
	s.loads++
	name := fmt.Sprintf("%s-%d", s.report.Run, s.loads)
	skus, err := s.supply(ctx, c, who, name)
	if err != nil {
		return round{}, err
	}
	l := load.Load{Shops: addresses(who.procs), Strategy: who.strategy(), Pick: c.pick(skus), Name: name, Patience: patience}
	began, client, shops := time.Now(), ownCPU(), sumCPU(who.procs)
	counts, err := work(l)
	if err != nil {
		return round{}, err
	}
	machine := time.Since(began).Seconds() * cores()
	r := newRound(counts)
	r.Client = (ownCPU() - client).Seconds() / machine
	r.Shops = (sumCPU(who.procs) - shops).Seconds() / machine
	if !who.isNothing() {
		r.Wrong, err = s.compare(ctx, c, skus, counts)
	}
	return r, err
}

// supply creates the SKUs of one round.
func (s *session) supply(ctx context.Context, c contest, who contestant, name string) ([]string, error) {
	skus := make([]string, c.skus)
	for i := range skus {
		skus[i] = fmt.Sprintf("%s-%03d", name, i)
		if who.isNothing() {
			continue
		}
		if err := s.operator().Create(ctx, skus[i], c.units); err != nil {
			return nil, err
		}
	}
	return skus, nil
}

// compare returns what is wrong with the books of a round, or nothing.
func (s *session) compare(ctx context.Context, c contest, skus []string, told load.Counts) (wrong string, err error) {
	ok, differences, orders, err := s.audit(ctx, c, skus)
	if err != nil {
		return "", err
	}
	if !ok {
		return fmt.Sprintf("the audit found %+v", differences), nil
	}
	return disagree(orders, told), nil
}

// audit returns what the books say of these SKUs. An audit of each of a hundred
// would take longer than the round: there is one of all, and since it says that
// levels and orders agree, the levels tell how many orders there are.
func (s *session) audit(ctx context.Context, c contest, skus []string) (ok bool, found []shopclient.Difference, orders int64, err error) {
	if len(skus) == 1 {
		a, err := s.operator().Audit(ctx, skus[0])
		return a.OK, a.Differences, a.Books.Orders, err
	}
	if ok, found, err = s.operator().Clean(ctx); err != nil {
		return false, nil, 0, err
	}
	for _, sku := range skus {
		left, err := s.operator().Available(ctx, sku)
		if err != nil {
			return false, nil, 0, err
		}
		orders += c.units - left
	}
	return ok, found, orders, nil
}

// disagree compares the number of orders in the books with what buyers were told.
func disagree(orders int64, told load.Counts) string {
	if orders >= told.Orders && orders <= told.Orders+told.Unknown {
		return ""
	}
	return fmt.Sprintf("%d orders in the books, %d acknowledged, %d unknown", orders, told.Orders, told.Unknown)
}

// sample buys one unit and returns the size of the answer.
func (s *session) sample(ctx context.Context) (int, error) {
	sku := s.report.Run + "-sample"
	if err := s.operator().Create(ctx, sku, 1); err != nil {
		return 0, err
	}
	// A name and a SKU as long as those of the load.
	body := strings.NewReader(fmt.Sprintf(`{"lines":[{"sku":%q,"quantity":1}]}`, sku))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.lineup[0].procs[0].Greeting+"/v1/orders", body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Shop-Buyer", sku)
	req.Header.Set("Idempotency-Key", sku)
	resp, err := s.conns.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	size, err := io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusCreated {
		err = fmt.Errorf("a first order: answer %d, want %d", resp.StatusCode, http.StatusCreated)
	}
	return int(size), err
}

func addresses(procs []*process.Process) []string {
	var all []string
	for _, p := range procs {
		all = append(all, p.Greeting)
	}
	return all
}

func sumCPU(procs []*process.Process) (sum time.Duration) {
	for _, p := range procs {
		sum += p.CPU()
	}
	return sum
}
