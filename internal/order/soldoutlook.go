package order

import (
	"time"

	"example.com/shop/internal/stock"
)

// look is one look of a leader at the stock of its SKU.
type look struct {
	of    *soldOut
	began time.Time
	stale bool // units came back since it began
	seen  stock.SKU
	done  bool // the stock was read
}

// begin is called before the stock of a SKU is read, by the only one of this
// instance who looks at it. The look ends with end.
func (s *soldOut) begin(sku string) *look {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &look{of: s, began: s.now()}
	s.looks[sku] = l
	return l
}

// end ends a look. The next one at the SKU may have begun.
func (s *soldOut) end(sku string, l *look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looks[sku] == l {
		delete(s.looks, sku)
	}
}

// wanted tells whether the keys of the SKU that l looked at are worth reading, and
// gives those that are known. An order raises the fence: where that and the supply
// are as they were, there is no new one. (Orders of a lab's other strategies do not.
// They need units that came back, and the news of that ends what is known.)
func (s *soldOut) wanted(l *look) (known keySet, wanted bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.keep == 0 || !s.hearing || l.stale || !l.done || l.seen.Level.Available > 0 {
		return nil, false
	}
	e := s.known[l.seen.Name]
	switch {
	case e == nil:
		return nil, true
	case e.given:
		return nil, !s.now().Before(e.until)
	case e.fence == l.seen.Fence && e.supplied == l.seen.Level.Supplied:
		return e.keys, true
	}
	return nil, true
}

// learn keeps what l has seen, with the keys that were read after it, unless units
// came back meanwhile.
func (s *soldOut) learn(l *look, keys keySet) {
	s.keepIt(l, &empty{until: l.began.Add(s.keep), supplied: l.seen.Level.Supplied, fence: l.seen.Fence, keys: keys})
}

// giveUp lets a SKU go the long way for a while.
func (s *soldOut) giveUp(l *look) {
	s.keepIt(l, &empty{until: s.now().Add(learnAgain), given: true})
}

func (s *soldOut) keepIt(l *look, e *empty) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.stale || !s.hearing {
		return
	}
	s.drop(l.seen.Name)
	for sku := range s.known { // any of them: it is learned again if it is asked for
		if len(s.known) < soldOutSKUs && s.keys+len(e.keys) <= allKeys {
			break
		}
		s.drop(sku)
	}
	s.known[l.seen.Name] = e
	s.keys += len(e.keys)
}

// again begins the look anew, before the stock is read another time.
func (l *look) again() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.began, l.stale, l.done = l.of.now(), false, false
}

// saw is told what was read.
func (l *look) saw(sku stock.SKU) { l.seen, l.done = sku, true }
