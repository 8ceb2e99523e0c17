package ui

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// state is what the page shows of a run while it goes on.
type state struct {
	Run    int         `json:"run"`   // 0 before the first
	Phase  string      `json:"phase"` // idle before the first
	Buyers int         `json:"buyers"`
	Stock  int64       `json:"stock"`
	Races  []raceState `json:"races"`
	Said   string      `json:"said"`   // what goes on or came of it, in a sentence
	Result bool        `json:"result"` // there is a report
}

type raceState struct {
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	Connected int64  `json:"connected"`
	Orders    int64  `json:"orders"` // of one unit each
	Refused   int64  `json:"refused"`
	Errors    int64  `json:"errors"`
	Retries   int64  `json:"retries"`
	Failure   string `json:"failure,omitempty"`
}

func (r *run) state() state {
	if r == nil {
		return state{Phase: "idle", Races: []raceState{}}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := state{
		Run: r.id, Phase: r.phase, Buyers: r.choice.Buyers, Stock: r.choice.Stock,
		Said: r.said(), Result: r.phase != running && len(r.report.Strategies) > 0,
	}
	for _, one := range r.races {
		s.Races = append(s.Races, one.state())
	}
	return s
}

func (r *race) state() raceState {
	s := raceState{Name: r.how.Name, Phase: r.phase}
	if r.err != nil {
		s.Failure = r.err.Error()
	}
	if t := r.tally; t != nil {
		s.Connected, s.Orders, s.Refused = t.Connected.Load(), t.Ordered.Load(), t.Refused.Load()
		s.Errors, s.Retries = t.Errors.Load(), t.Retries.Load()
	}
	if r.phase == done {
		s.Orders = r.result.UnitsSold // the books know more than the buyers were told
	}
	return s
}

// said is read out to who cannot see the bars.
func (r *run) said() string {
	if r.phase == running {
		return fmt.Sprintf("%s buyers, %s units.", humanize.Comma(int64(r.choice.Buyers)), humanize.Comma(r.choice.Stock))
	}
	var words []string
	for _, one := range r.races {
		switch {
		case one.phase == done && one.result.Oversold > 0:
			words = append(words, fmt.Sprintf("%s oversold by %s", one.how.Name, humanize.Comma(one.result.Oversold)))
		case one.phase == done:
			words = append(words, one.how.Name+" "+one.result.Verdict)
		default:
			words = append(words, one.how.Name+" "+one.phase)
		}
	}
	return map[string]string{done: "Done: ", failed: "Failed: ", ended: "Stopped: "}[r.phase] + strings.Join(words, ", ") + "."
}
