package faults

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"example.com/shop/loadtest/faults/fault"
	"example.com/shop/loadtest/faults/history"
	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/stats"
)

// Exhibit is what became of the buyers' receipts where the primary was killed.
type Exhibit struct {
	Servers  string
	Sold     int           // acknowledged orders
	Gone     int           // those of them without a row on the new primary
	Gap      time.Duration // in which nobody could buy
	Receipts []Receipt     // the last ones before it
}

// Receipt is an acknowledged order beside its row.
type Receipt struct {
	Before time.Duration // the gap
	Order  string
	Units  string // of each SKU, as acknowledged
	Row    string // the same of the row; empty if there is none
}

// KillPrimary sells by lanes on a group of three MySQL and kills its primary, whose network fails half a second before. With
// compare it then does so on a MySQL with an asynchronous replica. Both need Docker, and take a minute or two.
func KillPrimary(ctx context.Context, compare bool, seed uint64, progress func(line string)) (exhibits []Exhibit, err error) {
	err = withRunner(progress, func(r *runner) error {
		for _, on := range []struct {
			kind    system.Kind
			servers string
		}{{kind: system.Group, servers: "group of three"}, {kind: system.Replica, servers: "asynchronous replica"}} {
			if on.kind == system.Replica && !compare {
				break
			}
			f := fault.Fault{
				Name: "kill-primary", Break: fault.LoseMachine, Loses: true, // here it may
				Strategies: []string{"lanes"}, Buyers: 200,
			}
			h, err := r.hold(ctx, f, on.kind, seed)
			if err != nil {
				return cmp.Or(ctx.Err(), err)
			}
			e := newExhibit(on.servers, h)
			progress(fmt.Sprintf("%s: %d orders, %d gone", e.Servers, e.Sold, e.Gone))
			exhibits = append(exhibits, e)
		}
		return nil
	})
	return exhibits, err
}

func newExhibit(servers string, h *history.History) Exhibit {
	const shown = 12
	var sales []history.Operation // without replays, in the sequence of their answers
	known := map[string]bool{}
	for _, o := range h.Operations {
		if o.Kind == history.Buy && o.Outcome == history.Placed && !known[o.OrderID] {
			sales, known[o.OrderID] = append(sales, o), true
		}
	}
	slices.SortFunc(sales, func(a, b history.Operation) int { return cmp.Compare(a.Last().Answered, b.Last().Answered) })
	e := Exhibit{Servers: servers, Sold: len(sales)}
	before := 0 // sales before the gap
	for i, o := range sales {
		if _, kept := h.Orders[o.OrderID]; !kept {
			e.Gone++
		}
		if gap := o.Last().Answered - sales[max(0, i-1)].Last().Answered; gap > e.Gap {
			e.Gap, before = gap, i
		}
	}
	for _, o := range sales[max(0, before-shown):before] {
		receipt := Receipt{Before: sales[before-1].Last().Answered - o.Last().Answered, Order: o.OrderID}
		for _, line := range o.Lines {
			name := " " + line.SKU[strings.LastIndex(line.SKU, "-")+1:] + " "
			receipt.Units += fmt.Sprint(line.Units, name)
			if units := h.Orders[o.OrderID].Units[line.SKU]; units > 0 {
				receipt.Row += fmt.Sprint(units, name)
			}
		}
		e.Receipts = append(e.Receipts, receipt)
	}
	return e
}

// writeExhibits writes the counts side by side, and then each one's receipts.
func writeExhibits(out io.Writer, exhibits []Exhibit) error {
	head := table.Row{""}
	rows := []table.Row{{"orders acknowledged"}, {"sold orders that are gone"}, {"nobody could buy for"}}
	for _, e := range exhibits {
		head = append(head, e.Servers)
		for i, value := range []any{e.Sold, e.Gone, fmt.Sprintf("%.1f s", e.Gap.Seconds())} {
			rows[i] = append(rows[i], value)
		}
	}
	text := stats.Table(head, rows, 2, len(head))
	for _, e := range exhibits {
		rows = nil
		for _, r := range e.Receipts {
			rows = append(rows, table.Row{fmt.Sprintf("-%.1f ms", r.Before.Seconds()*1000), r.Order, r.Units, cmp.Or(r.Row, "GONE")})
		}
		text += fmt.Sprintf("\n%s: the last receipts, and the rows of the new primary\n%s", e.Servers, stats.Table(table.Row{"answered", "order", "receipt", "row"}, rows, 1, 1))
	}
	_, err := io.WriteString(out, text)
	return err
}
