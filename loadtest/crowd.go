package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/buyers"
)

// Limits of what the buyers can be asked for.
const (
	maxRate     = 20_000
	minDuration = 100 * time.Millisecond
	maxDuration = 10 * time.Minute // an unpaid order usually holds its units for longer than that
	maxRequests = 1_000_000        // of a race: each order placed is remembered
	maxSKUs     = 100
	maxSkew     = 5
	maxLines    = 20 // that an order may have
)

// crowd is what the buyers want and when, beyond one unit each at the same moment.
type crowd struct {
	Rate     *float64       `placeholder:"N" help:"Open model: so many orders per second are due, at random moments that do not depend on each other (Poisson), however slow the shop is. Waits count from the moment an order is due. One that finds all --buyers waiting for an answer is not sent and counts as an error. Needs --duration or --requests (0.1 to 20000)."`
	Duration *time.Duration `placeholder:"D" help:"Let buyers order for so long (100ms to 10m): with --rate when orders are due, without it each again as soon as there is an answer (closed model, in which a slow shop has fewer orders to answer)."`
	Requests *int           `placeholder:"N" help:"End after so many orders in all, sent as with --duration, whichever comes first (1 to 1000000, which is the limit without it, too)."`

	SKUs   int     `name:"skus" default:"1" help:"SKUs for sale, with --stock units of each (1 to 100)."`
	Skew   float64 `default:"0" help:"How much more the first SKUs are wanted: the k-th in proportion to 1/k^skew (Zipf); 0 is all alike (0 to 5)."`
	Lines  int     `default:"1" help:"SKUs in an order: each is a cart of 1 to so many, one unit of each (1 to 20)."`
	Cancel float64 `default:"0" help:"Share of the orders placed that their buyers cancel again (0 to 1)."`
	Retry  float64 `default:"0" help:"Share of the orders placed that are sent a second time with the same key, and must come out as one order (0 to 1)."`
}

// problem names the first flag that asks for too much, too little or what another
// one excludes. It is empty if there is none.
func (c crowd) problem() string {
	switch {
	case c.Rate != nil && !(*c.Rate >= 0.1 && *c.Rate <= maxRate):
		return fmt.Sprintf("--rate %v: want 0.1 to %d orders per second", *c.Rate, maxRate)
	case c.Rate != nil && c.Duration == nil && c.Requests == nil:
		return "--rate: say when it ends, with --duration or --requests"
	case c.Duration != nil && (*c.Duration < minDuration || *c.Duration > maxDuration):
		return fmt.Sprintf("--duration %v: want %v to %dm", *c.Duration, minDuration, maxDuration/time.Minute)
	case c.Requests != nil && (*c.Requests < 1 || *c.Requests > maxRequests):
		return fmt.Sprintf("--requests %d: want 1 to %d", *c.Requests, maxRequests)
	case c.Rate != nil && c.Requests == nil && *c.Rate*c.Duration.Seconds() > maxRequests:
		return fmt.Sprintf("--rate %v for --duration %v: want at most %d orders in all", *c.Rate, *c.Duration, maxRequests)
	case c.SKUs < 1 || c.SKUs > maxSKUs:
		return fmt.Sprintf("--skus %d: want 1 to %d", c.SKUs, maxSKUs)
	case !(c.Skew >= 0 && c.Skew <= maxSkew):
		return fmt.Sprintf("--skew %v: want 0 to %d", c.Skew, maxSkew)
	case c.Skew > 0 && c.SKUs == 1:
		return "--skew: want --skus 2 or more"
	case c.Lines < 1 || c.Lines > maxLines:
		return fmt.Sprintf("--lines %d: want 1 to %d", c.Lines, maxLines)
	case c.Lines > c.SKUs:
		return fmt.Sprintf("--lines %d: want at most as many as --skus %d, an order's lines are of different SKUs", c.Lines, c.SKUs)
	case !share(c.Cancel):
		return fmt.Sprintf("--cancel %v: want a share, 0 to 1", c.Cancel)
	case !share(c.Retry):
		return fmt.Sprintf("--retry %v: want a share, 0 to 1", c.Retry)
	}
	return ""
}

func share(p float64) bool { return p >= 0 && p <= 1 }

// pace is when orders are sent.
func (c crowd) pace() buyers.Pace {
	if c.Rate == nil && c.Duration == nil && c.Requests == nil {
		return buyers.Pace{}
	}
	p := buyers.Pace{Rate: value(c.Rate), Duration: value(c.Duration), Requests: maxRequests}
	if c.Requests != nil {
		p.Requests = *c.Requests
	}
	return p
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// words are the flags that repeat it, without those that say what is usual.
func (c crowd) words() []string {
	var words []string
	add := func(usual bool, flag, value string) {
		if !usual {
			words = append(words, flag, value)
		}
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	add(c.Rate == nil, "--rate", number(value(c.Rate)))
	add(c.Duration == nil, "--duration", value(c.Duration).String())
	add(c.Requests == nil, "--requests", strconv.Itoa(value(c.Requests)))
	add(c.SKUs == 1, "--skus", strconv.Itoa(c.SKUs))
	add(c.Skew == 0, "--skew", number(c.Skew))
	add(c.Lines == 1, "--lines", strconv.Itoa(c.Lines))
	add(c.Cancel == 0, "--cancel", number(c.Cancel))
	add(c.Retry == 0, "--retry", number(c.Retry))
	return words
}

// wants says what so many buyers want, for people.
func (c crowd) wants(crowd int, stock int64) string {
	who, units := humanize.Comma(int64(crowd))+" buyers", humanize.Comma(stock)
	var what string
	switch {
	case c.SKUs == 1:
		what = fmt.Sprintf("one of %s units", units)
	case c.Lines == 1:
		what = fmt.Sprintf("one of %s units of one of %d SKUs", units, c.SKUs)
	default:
		what = fmt.Sprintf("carts of 1 to %d SKUs, of %d SKUs with %s units", c.Lines, c.SKUs, units)
	}
	p := c.pace()
	var until []string
	if c.Duration != nil {
		until = append(until, "for "+p.Duration.String())
	}
	if c.Requests != nil {
		until = append(until, "up to "+humanize.Comma(int64(p.Requests))+" orders")
	}
	end := strings.Join(until, ", ")
	switch {
	case p == buyers.Pace{}:
		return fmt.Sprintf("%s want %s each, all at once", who, what)
	case p.Rate > 0:
		return fmt.Sprintf("%s orders per second are due, %s; %s send them and want %s each",
			strconv.FormatFloat(math.Round(p.Rate*10)/10, 'f', -1, 64), end, who, what)
	}
	return fmt.Sprintf("%s want %s each, again and again, %s", who, what, end)
}
