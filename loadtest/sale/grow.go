package main

import (
	"context"
	"fmt"

	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/sale/load"
	"example.com/shop/loadtest/sale/process"
)

// warmUp is how many orders a fresh shop has sold before it is measured.
const warmUp = 20

// grow is the case of that name: each number of buyers meets each contestant
// once, as one process that was started for this.
func (s *session) grow(ctx context.Context, c contest, into *caseReport) error {
	for _, buyers := range c.waiting {
		for _, who := range s.lineup {
			s.progress.at(c.name, fmt.Sprintf("%d at once", buyers), who.name)
			r, err := s.crowd(ctx, c, who, buyers)
			if err != nil {
				return fmt.Errorf("%d at %s: %w", buyers, who.name, err)
			}
			s.progress.ended(r)
			into.Rows = append(into.Rows, &row{Name: who.name, Buyers: buyers, Rounds: []round{r}})
		}
	}
	return nil
}

// crowd lets so many buyers buy at once from a shop that nobody bought much from
// before, so that the memory it gains is theirs.
func (s *session) crowd(ctx context.Context, c contest, who contestant, buyers int) (_ round, err error) {
	start := s.site.startShop
	if who.isNothing() {
		start = s.site.startNothing
	}
	fresh, err := start(ctx, 1)
	if err != nil {
		return round{}, err
	}
	defer func() { err = cleanup.Join(err, fresh.Stop()) }()
	who.procs = []*process.Process{fresh}
	warm, err := s.measure(ctx, c, who, func(l load.Load) (load.Counts, error) { return few(ctx, l) })
	if err != nil || warm.Wrong != "" {
		return warm, err
	}
	before, known := fresh.Memory()
	if known == nil {
		known = fresh.ForgetPeak()
	}
	r, err := s.measure(ctx, c, who, func(l load.Load) (load.Counts, error) {
		l.Buyers = buyers
		return l.Once(ctx)
	})
	if err != nil || known != nil {
		return r, err // without figures of memory
	}
	after, err := fresh.Memory()
	r.IdleBytes, r.PeakBytes = before.Now, after.Peak
	return r, err
}

// few is the warm-up: a handful of orders, one after the other.
func few(ctx context.Context, l load.Load) (all load.Counts, err error) {
	l.Buyers = 1
	name := l.Name
	for i := range warmUp {
		l.Name = fmt.Sprintf("%s-%d", name, i)
		counts, err := l.Once(ctx)
		if err != nil {
			return all, err
		}
		all.Orders += counts.Orders
		all.Unknown += counts.Unknown
	}
	return all, nil
}
