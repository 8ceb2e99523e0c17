package step

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// act is one entry of a schedule: what happens next, and to which buyer.
type act struct {
	kind  byte // one of the constants below
	buyer int  // 0 for A
}

const (
	steps   = 's' // the buyer takes a step
	runs    = 'r' // the buyer takes steps until it ends or waits; only in names
	dies    = 'x' // the buyer's process dies
	expires = 't' // the buyer's lock runs out, which it does not notice
	works   = 'w' // the buyer works for longer than a lock lives that is not renewed
)

const (
	buyerNames = "ABC"
	maxBuyers  = len(buyerNames)
	maxUnits   = 2
	maxActs    = 300 // of a schedule
)

// The name of a schedule is the strategy's, a colon, and a letter for each act: A takes a step, a runs until it ends or
// waits for another, xa dies, ta loses its lock by time, wa works for longer than a lock lives. none:ABab lets both
// read before one of them writes. More units than one stand behind the strategy's name, as in blind-del*2:ab.

// scheduleName names what was done. Acts after which the buyer could not go on end a run.
func scheduleName(strategy string, units int64, done []decision) string {
	var b strings.Builder
	b.WriteString(strategy)
	if units != 1 {
		fmt.Fprintf(&b, "*%d", units)
	}
	b.WriteString(":")
	for i := 0; i < len(done); {
		a, end := done[i].act, i+1
		for a.kind == steps && end < len(done) && !done[end-1].blocked && done[end].act == a {
			end++
		}
		if a.kind == steps && done[end-1].blocked {
			a.kind, i = runs, end-1
		}
		b.WriteString(strings.Repeat(a.String(), end-i))
		i = end
	}
	return b.String()
}

func (a act) String() string {
	name := buyerNames[a.buyer : a.buyer+1]
	switch a.kind {
	case steps:
		return name
	case runs:
		return strings.ToLower(name)
	}
	return string(a.kind) + strings.ToLower(name)
}

// ErrSchedule means that a name cannot be played: it is malformed, there is no such lesson or strategy, a server is
// missing for it, or the schedule does not fit the strategy.
var ErrSchedule = errors.New("cannot be played")

var (
	scheduleRule = regexp.MustCompile(`^([^:*]*)(\*\d+)?:(([ABC]|[xtw]?[abc])*)$`)
	actRule      = regexp.MustCompile(`[ABC]|[xtw]?[abc]`)
)

// parseSchedule reads what scheduleName has written.
func parseSchedule(name string) (strategy string, p plan, err error) {
	p.Buyers, p.Units = 2, 1
	parts := scheduleRule.FindStringSubmatch(name)
	if parts != nil && parts[2] != "" {
		p.Units, err = strconv.ParseInt(parts[2][1:], 10, 64)
	}
	if parts == nil || err != nil || p.Units < 1 || p.Units > maxUnits || len(parts[3]) > maxActs {
		return "", p, fmt.Errorf("%w: %.80q: want a strategy and letters, such as none:ABab, of A, a, xa, ta and wa, "+
			"for up to %d units such as none*2:ab", ErrSchedule, name, maxUnits)
	}
	for _, letters := range actRule.FindAllString(parts[3], -1) {
		kind, letter := letters[0], letters[len(letters)-1:]
		switch {
		case strings.Contains(buyerNames, letter):
			kind = steps
		case len(letters) == 1:
			kind = runs
		}
		buyer := strings.Index(buyerNames, strings.ToUpper(letter))
		p.acts, p.Buyers = append(p.acts, act{kind, buyer}), max(p.Buyers, buyer+1)
	}
	return parts[1], p, nil
}
