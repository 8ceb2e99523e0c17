package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/faults/history"
	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/stats"
)

// Failover compares the buyers' receipts with the orders that are left after the death of the primary.
type Failover struct {
	Servers    string
	Sold       int           // acknowledged orders
	Lost       int           // acknowledged orders without a row on the new primary
	Gap        time.Duration // the longest time without a sale
	Receipts   []Receipt     // up to the last lost one, or, if none is lost, to the last one before the gap
	Violations []history.Violation
}

// Receipt is an acknowledged order beside its row.
type Receipt struct {
	Before time.Duration // from this answer to the answer of the last receipt
	Order  string
	Units  string // that were acknowledged: "1 few, 2 cold"
	Row    string // the units in the row; empty if there is no row
}

// GroupOfThree are the Servers that lose nothing.
const GroupOfThree = "group of three"

// CanKillPrimary returns the reason why KillPrimary is impossible here, or nil if it is possible.
func CanKillPrimary(ctx context.Context) error {
	if err := exec.CommandContext(ctx, "go", "list", "example.com/shop/cmd/shop").Run(); err != nil {
		return errors.New("the shop cannot be built: start this program with Go, in a checkout of the shop")
	}
	if err := testserver.Docker(ctx); err != nil {
		return errors.New("no Docker daemon answers: install Docker or start it")
	}
	return nil
}

// KillPrimary sells by lanes on a group of three MySQL and kills its primary, whose network fails 0.3 to 0.6 s before. Then
// it does so on a MySQL with an asynchronous replica. Each needs Docker, and takes about a minute.
func KillPrimary(ctx context.Context, seed uint64, progress func(line string)) (all []Failover, err error) {
	r := newRunner(progress)
	r.strategies, r.buyers = [system.Instances]string{"lanes", "lanes", "lanes"}, 200
	defer func() { err = errors.Join(err, r.close()) }()
	for _, on := range []struct {
		kind    system.Kind
		servers string
	}{{system.Group, GroupOfThree}, {system.Replica, "asynchronous replica"}} {
		h, err := r.runHistory(ctx, fault{name: "kill-primary", on: on.kind, means: loses, steps: loseMachine()}, seed)
		if err != nil {
			return nil, cmp.Or(ctx.Err(), err)
		}
		all = append(all, newFailover(on.servers, h))
		progress(fmt.Sprintf("sold on the %s: %d orders", on.servers, h.Sold))
	}
	return all, nil
}

func newFailover(servers string, h *history.History) Failover {
	const shown = 12
	f := Failover{Servers: servers, Sold: h.Sold, Gap: h.Gap, Violations: h.Violations}
	last := h.BeforeGap // when the last order that is shown was acknowledged
	for _, o := range h.Sales() {
		if _, kept := h.Orders[o.OrderID]; !kept {
			f.Lost++
			last = o.Last().Answered
		}
	}
	sales := slices.DeleteFunc(h.Sales(), func(o history.Operation) bool { return o.Last().Answered > last })
	for _, o := range sales[max(0, len(sales)-shown):] {
		receipt := Receipt{Before: last - o.Last().Answered, Order: o.OrderID}
		var acknowledged, kept []string
		for _, line := range o.Lines {
			name := strings.TrimPrefix(line.SKU, h.Name+"-")
			acknowledged = append(acknowledged, fmt.Sprintf("%d %s", line.Units, name))
			if units := h.Orders[o.OrderID].Units[line.SKU]; units > 0 {
				kept = append(kept, fmt.Sprintf("%d %s", units, name))
			}
		}
		receipt.Units, receipt.Row = strings.Join(acknowledged, ", "), strings.Join(kept, ", ")
		f.Receipts = append(f.Receipts, receipt)
	}
	return f
}

// writeFailovers writes the counts side by side, and then the receipts of each. A group must lose nothing.
func writeFailovers(out io.Writer, all []Failover) error {
	head := table.Row{""}
	rows := []table.Row{{"orders acknowledged"}, {"acknowledged orders lost"}, {"no sale for"}}
	for _, f := range all {
		head = append(head, f.Servers)
		for i, value := range []any{f.Sold, f.Lost, fmt.Sprintf("%.1f s", f.Gap.Seconds())} {
			rows[i] = append(rows[i], value)
		}
	}
	text := stats.Table(head, rows, 2, len(head))
	for _, f := range all {
		rows = nil
		for _, r := range f.Receipts {
			rows = append(rows, table.Row{fmt.Sprintf("-%.1f ms", r.Before.Seconds()*1000), r.Order, r.Units, cmp.Or(r.Row, "LOST")})
		}
		text += fmt.Sprintf("\n%s: the last receipts, and the rows of the new primary\n%s", f.Servers, stats.Table(table.Row{"answered", "order", "receipt", "row"}, rows, 1, 1))
	}
	for _, v := range all[0].Violations {
		text += fmt.Sprintf("\n%s: %s: %s\n", all[0].Servers, v.Check, v.Detail)
	}
	_, err := io.WriteString(out, text)
	if err == nil && len(all[0].Violations) > 0 {
		err = ErrBroken
	}
	return err
}
