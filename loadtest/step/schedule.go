package step

import (
	"errors"
	"fmt"
	"strings"
)

// act is one entry of a schedule: what happens next, and to which buyer.
type act struct {
	kind  byte // one of the constants below
	buyer int  // 0 for A
}

const (
	steps = 's' // the buyer takes a step
	runs  = 'r' // the buyer takes steps until it ends or waits; only in names
	dies  = 'x' // the buyer's process dies
	times = 't' // the buyer's lock runs out, which it does not notice
)

// buyerNames are A, B and C; maxBuyers is how many there are.
const (
	buyerNames = "ABC"
	maxBuyers  = len(buyerNames)
)

// The name of a schedule is the strategy's, a colon, and a letter for each act: A takes a step, a runs until it ends or
// waits for another, xa dies, ta loses its lock by time. none:ABab lets both read before one of them writes.

// scheduleName names what was done. Acts after which the buyer could not go on end a run.
func scheduleName(strategy string, done []decision) string {
	var b strings.Builder
	b.WriteString(strategy + ":")
	for i := 0; i < len(done); {
		a := done[i].act
		name := buyerNames[a.buyer : a.buyer+1]
		if a.kind != steps {
			b.WriteString(string(a.kind) + strings.ToLower(name))
			i++
			continue
		}
		end := i + 1
		for end < len(done) && !done[end-1].over && done[end].act == a {
			end++
		}
		if done[end-1].over {
			b.WriteString(strings.ToLower(name))
		} else {
			b.WriteString(strings.Repeat(name, end-i))
		}
		i = end
	}
	return b.String()
}

// ErrSchedule means that a name is malformed, or that its schedule does not fit its strategy.
var ErrSchedule = errors.New("no such schedule")

// parseSchedule reads what scheduleName has written.
func parseSchedule(name string) (strategy string, acts []act, buyers int, err error) {
	strategy, letters, found := strings.Cut(name, ":")
	if !found || len(letters) > maxActs {
		return "", nil, 0, fmt.Errorf("%w: %.80q: want a strategy and letters, such as none:ABab", ErrSchedule, name)
	}
	buyers = 2
	kind := byte(0)
	for _, letter := range []byte(letters) {
		buyer := strings.IndexByte(buyerNames, letter)
		small := strings.IndexByte(strings.ToLower(buyerNames), letter)
		switch {
		case kind == 0 && (letter == dies || letter == times):
			kind = letter
			continue
		case kind == 0 && buyer >= 0:
			acts = append(acts, act{steps, buyer})
		case kind == 0 && small >= 0:
			acts = append(acts, act{runs, small})
		case kind != 0 && small >= 0:
			acts = append(acts, act{kind, small})
		default:
			return "", nil, 0, fmt.Errorf("%w: %.80q: want letters such as A, a, xa and ta", ErrSchedule, name)
		}
		kind = 0
		buyers = max(buyers, acts[len(acts)-1].buyer+1)
	}
	if kind != 0 {
		return "", nil, 0, fmt.Errorf("%w: %.80q: want a buyer behind %c", ErrSchedule, name, kind)
	}
	return strategy, acts, buyers, nil
}
