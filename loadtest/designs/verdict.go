package designs

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Outcome is what came of a sale with a fault, by the buyers' receipts and the rows of their orders alone.
type Outcome struct {
	design Design

	Fault        string `json:"fault"`
	Supplied     int64  `json:"supplied_units"`
	Acknowledged int    `json:"acknowledged_orders"`
	Lost         int    `json:"lost_orders"`     // acknowledged, without a row
	Oversold     int64  `json:"oversold_units"`  // in orders that are acknowledged or have a row, above the supply
	Undersold    int64  `json:"undersold_units"` // for sale when a buyer was told sold out
	Left         int64  `json:"left_units"`      // of those, what nobody has bought in the end

	// StandsStill says that nothing was sold after the fault, nor was each buyer told that the SKU is sold out.
	StandsStill bool `json:"stands_still"`

	// Seconds is the longest time without an acknowledged order, from the last one before the fault on; nil if none was
	// acknowledged afterwards.
	Seconds *float64 `json:"sells_again_seconds"`

	Verdict  string `json:"verdict"`       // nothing, or what is wrong
	Operator string `json:"operator_does"` // what a person has to do afterwards
}

// unharmed is the verdict of a sale in which nothing went wrong, and the task of its operator.
const unharmed = "nothing"

// verdictOf says what went wrong in any of the outcomes, and what an operator has to do. The program itself is started
// again by what supervises it.
func verdictOf(outcomes ...Outcome) (verdict, task string) {
	var all Outcome
	for _, o := range outcomes {
		all.Lost, all.Oversold, all.Undersold = all.Lost+o.Lost, all.Oversold+o.Oversold, all.Undersold+o.Undersold
		all.Left, all.StandsStill, all.design = all.Left+o.Left, all.StandsStill || o.StandsStill, o.design
	}
	recount := "count the units in orders, and put the others up for sale again"
	if all.design.Redis {
		recount = "stop the sale, count the units in orders, and load Redis again"
	}
	var words, tasks []string
	for _, h := range []struct {
		harmed     bool
		word, task string
	}{
		{all.Lost > 0, "lost", "find the buyers whose orders are lost, by logs of the web servers"},
		{all.Oversold > 0, "oversold", "cancel orders and give money back"},
		{all.StandsStill, "stands still", ""},
		{all.Undersold > 0, "undersold", ""},
		{all.StandsStill || all.Left > 0, "", recount},
	} {
		if h.harmed && h.word != "" {
			words = append(words, h.word)
		}
		if h.harmed && h.task != "" {
			tasks = append(tasks, h.task)
		}
	}
	return cmp.Or(strings.Join(words, ", "), unharmed), cmp.Or(strings.Join(tasks, "; "), unharmed)
}

// judge compares receipts with rows: the IDs of the orders.
func (s *sale) judge(rows map[string]bool) Outcome {
	o, units := Outcome{design: s.design, Fault: s.fault.name, Supplied: s.supply}, int64(len(rows))
	if s.left == saleBuyers {
		o.Left = max(0, s.supply-units)
	}
	// Several buyers write receipts at the same time.
	slices.SortFunc(s.receipts, func(a, b receipt) int { return a.Answered.Compare(b.Answered) })
	var firstRefusal, last time.Time
	gap, again, late := time.Duration(0), false, int64(0) // late: sold to buyers who asked after the first refusal
	for _, r := range s.receipts {
		if r.Answer == refused && firstRefusal.IsZero() {
			firstRefusal = r.Answered
		}
		if r.Answer != sold {
			continue
		}
		o.Acknowledged++
		switch {
		case !rows[r.Order]:
			o.Lost++
		case !firstRefusal.IsZero() && r.Asked.After(firstRefusal):
			late++
		}
		if r.Answered.After(s.broken) && !last.IsZero() {
			gap = max(gap, r.Answered.Sub(last))
		}
		again, last = again || r.Asked.After(s.healed), r.Answered
	}
	o.Oversold = max(0, units+int64(o.Lost)-s.supply)
	o.Undersold = min(o.Left+late, max(0, s.supply-units+late))
	if seconds := gap.Seconds(); again {
		o.Seconds = &seconds
	}
	o.StandsStill = !again && s.left < saleBuyers
	o.Verdict, o.Operator = verdictOf(o)
	return o
}

// rows returns the IDs of the orders of the SKU, of one unit each.
func (s *sale) rows(ctx context.Context) (ids map[string]bool, err error) {
	rows, err := s.on.DB.QueryContext(ctx, "SELECT idempotency_key FROM orders JOIN order_lines ON order_id = id WHERE sku = ?", s.sku)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	ids = map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids[id] = true
	}
	return ids, rows.Err()
}
