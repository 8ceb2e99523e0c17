package designs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// Outcome is what came of a sale with a fault, by the buyers' receipts and the rows of their orders alone.
type Outcome struct {
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

// judge compares receipts with rows.
func (s *sale) judge(rows map[string]bool) Outcome {
	o, units := Outcome{Supplied: s.Supply}, int64(len(rows))
	if s.left == saleBuyers {
		o.Left = max(0, s.Supply-units)
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
	o.Oversold = max(0, units+int64(o.Lost)-s.Supply)
	o.Undersold = min(o.Left+late, max(0, s.Supply-units+late))
	if seconds := gap.Seconds(); again {
		o.Seconds = &seconds
	}
	o.StandsStill = !again && s.left < saleBuyers
	o.Verdict = verdictOf(o)
	return o
}

// verdictOf says what went wrong in any of the outcomes.
func verdictOf(outcomes ...Outcome) string {
	wrong := map[string]bool{}
	for _, o := range outcomes {
		for word, is := range map[string]bool{
			"lost": o.Lost > 0, "oversold": o.Oversold > 0, "undersold": o.Undersold > 0, "stands still": o.StandsStill,
		} {
			if is {
				wrong[word] = true
			}
		}
	}
	return cmp.Or(strings.Join(slices.Sorted(maps.Keys(wrong)), ", "), unharmed)
}

// operator says what a person has to do. The program itself is started again by what supervises it.
func (o Outcome) operator(d Design) string {
	var tasks []string
	if o.Lost > 0 {
		tasks = append(tasks, "find the buyers whose orders are lost, by logs of the web servers")
	}
	if o.Oversold > 0 {
		tasks = append(tasks, "cancel orders and give money back")
	}
	switch {
	case (o.Left > 0 || o.StandsStill) && d.Redis:
		tasks = append(tasks, "stop the sale, count the units in orders, and load Redis again")
	case o.Left > 0 || o.StandsStill:
		tasks = append(tasks, "count the units in orders, and put the others up for sale again")
	}
	return cmp.Or(strings.Join(tasks, "; "), unharmed)
}

// rows returns the IDs of the orders of the SKU, of one unit each.
func (s *sale) rows(ctx context.Context) (ids map[string]bool, err error) {
	rows, err := s.DB.QueryContext(ctx, "SELECT idempotency_key FROM orders JOIN order_lines ON order_id = id WHERE sku = ?", s.SKU)
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
