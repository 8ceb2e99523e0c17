package order

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"example.com/shop/internal/stock"
)

// SetSoldOutClock gives what is remembered of sold-out SKUs a clock of the test's.
// It is called before the Service is used.
func (s *Service) SetSoldOutClock(now func() time.Time) { s.soldOut.now = now }

// SetRecentClock does so for what the lanes have seen last.
func (s *Service) SetRecentClock(now func() time.Time) { s.recent.now = now }

// SetRecentFor lets what a lane has seen be good for so long, by a clock that a slow
// machine does not run out.
func (s *Service) SetRecentFor(d time.Duration) { s.recent.keep = d }

// RecentFor is how long what a lane has seen is good for another batch.
const RecentFor = recentFor

// ErrInVain ends a head start that is of no use.
var ErrInVain = errInVain

// HeadStarts is how many there are now.
func (s *Service) HeadStarts() int { return len(s.headStarts) }

// SoldOutKeys is how many keys of a SKU's orders are remembered at most.
const SoldOutKeys = soldOutKeys

// LearnAgain is how long a SKU whose keys could not be read goes the long way.
const LearnAgain = learnAgain

// Remembering returns a Service without stores that remembers for an hour that a SKU
// is sold out, and so many keys of its orders.
func Remembering(tb testing.TB, sku string, keys int) *Service {
	tb.Helper()
	s := &Service{soldOut: newSoldOut(time.Hour, time.Now), lanes: newLanes(1), strategies: Strategies()}
	s.Hears(true)
	l := s.soldOut.begin(sku)
	l.saw(stock.SKU{Name: sku})
	set := make(keySet, keys)
	for i := range set {
		set[i] = s.soldOut.hash(BuyerKey{"buyer-" + strconv.Itoa(i), "key"})
	}
	slices.Sort(set)
	s.soldOut.learn(l, set)
	return s
}

// RememberedSKUs is how many SKUs s remembers.
func (s *Service) RememberedSKUs() int { return len(s.soldOut.known) }

// RememberedKeys is how many keys s remembers.
func (s *Service) RememberedKeys() int { return s.soldOut.keys }

// Remember lets s remember one more SKU, with so many keys.
func (s *Service) Remember(sku string, keys int) {
	l := s.soldOut.begin(sku)
	defer s.soldOut.end(sku, l)
	l.saw(stock.SKU{Name: sku})
	s.soldOut.learn(l, make(keySet, keys))
}
