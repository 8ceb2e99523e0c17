package order

import (
	"slices"
	"time"

	"example.com/shop/internal/stock"
)

// sale is what one transaction sells of one SKU.
type sale struct {
	orders []Claim   // in the order of arrival
	of     [][]*wish // by order: the wish that it is, and those that came after it with the same key
	take   stock.Take
	limits limits
	think  time.Duration // the longest that any of them asks for

	refused []refusal // if those before them are sold what they want
	all     []*wish   // in the order of arrival

	seen   []stock.SKU      // the one that all of them want
	now    time.Time        // by the database's clock, when it was so
	placed map[BuyerKey]int // the order of a key
	ahead  *headStart       // has begun the transaction; nil for nobody
}

// refusal is a wish that gets nothing, and why.
type refusal struct {
	*wish
	err error
}

// plan plans a sale of the SKU that all of the wishes want.
func (s *Service) plan(wishes []*wish, seen sight) sale {
	terms, skus := seen.sku.Terms(), []stock.SKU{seen.sku}
	p := sale{
		take:   stock.Take{SKU: seen.sku.Name, Terms: &terms},
		limits: s.limits(skus),
		seen:   skus,
		now:    seen.at,
		placed: map[BuyerKey]int{},
	}
	s.extend(&p, wishes)
	return p
}

// extend gives the units that are left to further wishes, in the order of arrival.
// One that wants more is sold out; a smaller one behind it may still fit.
func (s *Service) extend(p *sale, wishes []*wish) {
	sku := p.seen[0]
	soldOut := errSoldOut(sku.Name)
	for _, w := range wishes {
		units := w.line().Units
		if i, twin := p.placed[w.key()]; twin {
			p.of[i] = append(p.of[i], w)
		} else if units > sku.Level.Available-p.take.Units {
			p.refused = append(p.refused, refusal{w, soldOut})
		} else if o, err := s.draft(w.request, p.seen, p.now); err != nil {
			p.refused = append(p.refused, refusal{w, err})
		} else {
			p.placed[w.key()] = len(p.orders)
			p.orders = append(p.orders, Claim{Order: o, Fingerprint: w.print})
			p.of = append(p.of, []*wish{w})
			p.take.Units += units
			p.think = max(p.think, w.request.Think)
		}
		p.all = append(p.all, w)
	}
}

// drafts are the orders of a sale behind the first few.
func (p sale) drafts(behind int) []Order {
	orders := make([]Order, len(p.orders)-behind)
	for i, claim := range p.orders[behind:] {
		orders[i] = claim.Order
	}
	return orders
}

// buyers are the wishes that orders are placed for.
func (p sale) buyers() []*wish {
	first := make([]*wish, len(p.of))
	for i, wishes := range p.of {
		first[i] = wishes[0]
	}
	return first
}

// tell answers all wishes of a sale that is committed.
func (p sale) tell() {
	for i, claim := range p.orders {
		first, twins := p.of[i][0], p.of[i][1:]
		first.tell(outcome{order: claim.Order})
		for _, w := range twins {
			w.tell(replayOf(claim, w))
		}
	}
	for _, r := range p.refused {
		r.tell(outcome{err: r.err})
	}
}

// leaveOut tells those of these orders why they are refused, and returns the
// other wishes: there may be units for more of them now.
func (p sale) leaveOut(orders map[int]error) (rest []*wish) {
	told := map[*wish]bool{}
	for i, err := range orders {
		w := p.of[i][0]
		told[w] = true
		w.tell(outcome{err: err})
	}
	return slices.DeleteFunc(p.all, func(w *wish) bool { return told[w] })
}
