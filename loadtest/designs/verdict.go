package designs

import (
	"context"
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
	Untold       int    `json:"untold_orders"`   // with a row, not acknowledged: allowed, their buyers ask again

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
func (t *trial) judge(rows map[string]int64) Outcome {
	o := Outcome{Supplied: t.supply, Untold: len(rows)}
	units := int64(0)
	for _, n := range rows {
		units += n
	}
	if t.left == saleBuyers {
		o.Left = max(0, t.supply-units)
	}
	// Several buyers write receipts at the same time.
	slices.SortFunc(t.receipts, func(a, b receipt) int { return a.answered.Compare(b.answered) })
	var firstRefusal, last time.Time
	gap, again, late := time.Duration(0), false, int64(0) // late: sold to buyers who asked after the first refusal
	for _, r := range t.receipts {
		switch {
		case r.answer == refused && firstRefusal.IsZero():
			firstRefusal = r.answered
		case r.answer != sold:
		default:
			o.Acknowledged++
			if rows[r.order] == 0 {
				o.Lost++
			} else {
				o.Untold--
			}
			if !firstRefusal.IsZero() && r.began.After(firstRefusal) && rows[r.order] > 0 {
				late++
			}
			if r.answered.After(t.broken) && !last.IsZero() {
				gap = max(gap, r.answered.Sub(last))
			}
			again, last = again || r.began.After(t.healed), r.answered
		}
	}
	o.Oversold = max(0, units+int64(o.Lost)-t.supply)
	o.Undersold = min(o.Left+late, max(0, t.supply-units+late))
	if seconds := gap.Seconds(); again {
		o.Seconds = &seconds
	}
	o.StandsStill = !again && t.left < saleBuyers
	o.Verdict = verdictOf(o)
	return o
}

// verdictOf says what went wrong in any of the outcomes.
func verdictOf(outcomes ...Outcome) string {
	var words []string
	for _, w := range []struct {
		word  string
		wrong func(Outcome) bool
	}{
		{"lost", func(o Outcome) bool { return o.Lost > 0 }},
		{"oversold", func(o Outcome) bool { return o.Oversold > 0 }},
		{"undersold", func(o Outcome) bool { return o.Undersold > 0 }},
		{"stands still", func(o Outcome) bool { return o.StandsStill }},
	} {
		if slices.ContainsFunc(outcomes, w.wrong) {
			words = append(words, w.word)
		}
	}
	if words == nil {
		return unharmed
	}
	return strings.Join(words, ", ")
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
	case o.Undersold > 0:
		tasks = append(tasks, "tell the buyers who were turned away to come again")
	}
	if tasks == nil {
		return unharmed
	}
	return strings.Join(tasks, "; ")
}

// rows returns the units of each order of the SKU, by the ID that its buyer knows.
func (t *trial) rows(ctx context.Context) (units map[string]int64, err error) {
	rows, err := t.on.DB.QueryContext(ctx, `SELECT o.idempotency_key, l.units
		FROM orders o JOIN order_lines l ON l.order_id = o.id WHERE l.sku = ?`, t.SKU)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	units = map[string]int64{}
	for rows.Next() {
		var order string
		var n int64
		if err := rows.Scan(&order, &n); err != nil {
			return nil, err
		}
		units[order] = n
	}
	return units, rows.Err()
}
