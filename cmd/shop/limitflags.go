package main

import (
	"time"

	"example.com/shop/internal/app"
)

// defaultRateLimit is more than a person can click and a small part of what an
// instance sells, so that one buyer's program cannot crowd out all the others.
const defaultRateLimit = 20

// defaultMaxOpen is more than an honest buyer leaves unpaid, and so little that it
// takes many buyers to keep a shop's units from being sold.
const defaultMaxOpen = 10

// limitFlags bound what buyers can ask of the shop.
type limitFlags struct {
	RateLimit      *int          `placeholder:"N" help:"Requests per second that one buyer may send to place, pay or cancel orders, over all instances, and five times as many in a burst; more get a 429. 1 to 100000, 0 for no limit; 20 if not given; none with --lab, whose buyers are a load test's." variable:"SHOP_RATE_LIMIT"`
	RateLimitFails string        `enum:"open,closed" default:"open" help:"While Redis cannot count a buyer's requests: open lets them through, closed answers 503. New orders need Redis for their lock anyway, so the choice matters for pay and cancel." variable:"SHOP_RATE_LIMIT_FAILS"`
	MaxOpenOrders  *int          `placeholder:"N" help:"Orders that one buyer may have pending, over all instances; one more gets a 429. 1 to 1000, 0 for no limit; 10 if not given; none with --lab." variable:"SHOP_MAX_OPEN_ORDERS"`
	SoldOutFor     time.Duration `default:"1s" help:"How long this instance refuses orders of a SKU that had nothing left without asking the database. It is told when units come back; if that gets lost it turns buyers away wrongly for as long. 0s for not at all, and to tell others nothing; at most 1m." variable:"SHOP_SOLD_OUT_FOR"`
	MaxInFlight    int           `default:"12000" help:"Requests that this instance works on or lets wait at a time; one more gets a 503. 1 to 100000; a waiting one takes about 50 KB." variable:"SHOP_MAX_IN_FLIGHT"`
}

// limit sets what the flags say.
func (f limitFlags) limit(s *app.Settings) {
	s.RateLimit = unlessLab(s, f.RateLimit, defaultRateLimit)
	s.MaxOpenOrders = unlessLab(s, f.MaxOpenOrders, defaultMaxOpen)
	s.RateLimitFailsClosed = f.RateLimitFails == "closed"
	s.SoldOutFor = f.SoldOutFor
	s.MaxInFlight = f.MaxInFlight
}

// unlessLab is what was typed or the default, which in teaching mode is none.
func unlessLab(s *app.Settings, typed *int, normally int) int {
	switch {
	case typed != nil:
		return *typed
	case s.Lab:
		return 0
	}
	return normally
}
