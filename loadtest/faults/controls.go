package faults

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"example.com/shop/internal/testserver/overlay"
	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/stats"
)

// tries is how many histories there are to find a control.
const tries = 200

// control is a mistake that the suite must catch: in the shop, in its clients, or in the database behind it.
type control struct {
	name  string
	about string
	fault string      // under which it shows
	on    system.Kind // on which servers
	edits []edit      // of the shop's source; none: the mistake is elsewhere

	strategies string // of the shops, if they are not those of all other histories
	forgetKey  bool   // by clients
	by         string // the check that has to find it, if that is one of those that a slow machine also breaks
}

// edit is a change of a source file. The old text is in it exactly once.
type edit struct{ file, old, new string }

// allControls is the table. Adding a control is adding a row.
func allControls() []control {
	const (
		take, tx, orders, keys, skus = "internal/store/stock.go", "internal/store/tx.go", "internal/store/orders.go", "internal/store/keys.go", "internal/store/skus.go"
		single, redis, leases        = "internal/order/strategy/shop.go", "internal/order/strategy/redis.go", "internal/order/batch/leases.go"
		attempt, sell, ends          = "internal/order/batch/attempt.go", "internal/order/batch/sell.go", "internal/order/batch/end.go"
		payment, payments            = "internal/order/payment.go", "internal/store/payments.go"
		sent                         = "done := db.Exec(statement, values...)\n"
		pending                      = "found.Status == order.Pending && found.Due == (e.As == order.Expired)"
	)
	return []control{
		{name: "asynchronous-replica", on: system.Replica, fault: "replica-promoted",
			about: "an asynchronous replica takes over from a killed MySQL"},
		{name: "commits-not-flushed", on: system.MySQL, fault: "mysql-killed-unflushed",
			about: "MySQL acknowledges commits before they are on disk, and is killed"},

		{name: "retry-without-key", on: system.Embedded, fault: "shop-killed", forgetKey: true,
			about: "clients ask again with a new idempotency key"},
		{name: "early-release", on: system.Embedded, fault: "shop-paused", strategies: "redis",
			about: "the lock is released before the commit, and the UPDATE compares nothing",
			edits: []edit{
				{redis, "ctx = leases.Context() ", "_ = leases.Context() "},
				{redis, "return s.raisingFence(", "_ = leases.Release()\n\treturn s.raisingFence("},
				{redis, "stock.Fenced", "stock.Overwrite"},
				{redis, "return s.InTime(leases)", "return nil"},
			}},

		{name: "fence-unchecked", on: system.Embedded, fault: "redis-flushed",
			about: "the UPDATE does not compare the fence",
			edits: []edit{{take, "available >= ? AND fence < ?", "available >= ? AND (fence < ? OR 1 = 1)"}}}, // the arguments stay
		{name: "success-unknown", on: system.MySQL, fault: "commit-not-sent",
			about: "a COMMIT without an answer counts as done",
			edits: []edit{{tx, `return fmt.Errorf("%w: %w", order.ErrUnknownOutcome, err)`, "return nil"}}},
		{name: "lock-wait-ignored", on: system.MySQL, fault: "rows-locked",
			about: "a statement that waited too long for a row (1205) counts as done, and the rest is committed",
			edits: []edit{{take, sent, sent + "\tif classify(done.Error) == lockWait {\n\t\treturn nil\n\t}\n"}}},
		{name: "deadlock-statement-repeated", on: system.MySQL, fault: "deadlocks",
			about: "after a deadlock (1213) the statement is repeated, and not the transaction that was rolled back",
			edits: []edit{{take, sent, sent + "\tif classify(done.Error) == conflict {\n\t\tdone = db.Exec(statement, values...)\n\t}\n"}}},
		{name: "key-outside-transaction", on: system.MySQL, fault: "shop-killed",
			about: "the idempotency key is committed before the order",
			edits: []edit{{keys, "t.db.Exec(\"INSERT INTO `idempotency_keys`", "t.store.db.Exec(\"INSERT INTO `idempotency_keys`"}}},
		{name: "key-ignored", on: system.Embedded, fault: "shop-killed",
			about: "a repeated idempotency key is a new order",
			edits: []edit{{keys, "c.Order.Buyer, c.Order.Key, c.Fingerprint", "c.Order.Buyer, c.Order.ID, c.Fingerprint"}}},
		{name: "second-payment-accepted", on: system.Embedded, fault: "shop-paused",
			about: "another payment of a paid order is answered as the one that paid it",
			edits: []edit{{payment, "case f.Status == Paid:\n\t\treturn ErrAlreadyPaid.Code", "case f.Status == Paid:\n\t\treturn \"\""}}},
		{name: "expired-order-paid", on: system.Embedded, fault: "shop-paused",
			about: "an order is paid although it has expired",
			edits: []edit{
				{payment, "case f.Status == Expired || f.Due:\n\t\treturn ErrExpired.Code", "case f.Status == Expired:\n\t\treturn ErrExpired.Code"},
				{ends, pending, "(" + pending + " || found.Status == order.Pending && e.As == order.Paid)"},
			}},
		{name: "amount-not-compared", on: system.Embedded, fault: "shop-paused",
			about: "a payment of a wrong amount pays an order",
			edits: []edit{{payment, "case f.Total != amount:\n\t\treturn ErrAmountMismatch.Code", "case f.Total != amount:\n\t\treturn \"\""}}},
		{name: "payment-forgotten", on: system.Embedded, fault: "shop-paused",
			about: "a payment is on record for a second",
			edits: []edit{{payments, "	idOf := func", `	if err := t.db.Exec("DELETE FROM payments WHERE created_at < ?", dbTime{time.Now().Add(-time.Second)}).Error; err != nil {
		return nil, err
	}
	idOf := func`}}},
		{name: "expiry-of-paid-orders", on: system.Embedded, fault: "shop-paused",
			about: "the sweep expires orders that were paid",
			edits: []edit{
				{orders, `"status = ? AND expires_at <= "+s.clock, order.Pending`, `"status IN ? AND expires_at <= "+s.clock, []order.Status{order.Pending, order.Paid}`},
				{orders, "WHERE id IN ? AND status = ?", "WHERE id IN ? AND (status = ? OR 1 = 1)"},
				{ends, pending, "(" + pending + " || found.Status == order.Paid && found.Due && e.As == order.Expired)"},
			}},
		{name: "expiry-by-own-clock", on: system.Embedded, fault: "clocks-apart",
			about: "a shop's own clock decides whether an order can still be paid",
			edits: []edit{{orders, `expires_at <= "+t.store.clock+" AS due`, `expires_at <= '"+ownNow()+"' AS due`},
				{orders, "// dbTime is", "func ownNow() string { return time.Now().UTC().Format(timeLayout) }\n\n// dbTime is"}}},
		{name: "units-not-returned", on: system.Embedded, fault: "shop-paused",
			about: "a cancelled order's units stay reserved",
			edits: []edit{
				{take, "\t\tchanges[\"supplied\"]", "\t\tif m.Kind == stock.Release {\n\t\t\tm.Change = stock.Level{}\n\t\t}\n\t\tchanges[\"supplied\"]"},
				{take, "\tdone := t.db.Exec(\"UPDATE skus SET \"+strings", "\tif len(set) == 0 {\n\t\treturn t.Record(movements...)\n\t}\n\tdone := t.db.Exec(\"UPDATE skus SET \"+strings"},
			}},
		{name: "ledger-incomplete", on: system.Embedded, fault: "shop-paused",
			about: "the ledger lacks a cart's second line",
			edits: []edit{{single, "d.Movements(stock.Reserve, fences, d.CreatedAt)...", "d.Movements(stock.Reserve, fences, d.CreatedAt)[:1]..."}}},
		{name: "delivery-counted-twice", on: system.MySQL, fault: "commit-not-answered",
			about: "a delivery that is sent again counts again",
			edits: []edit{{skus, "IdempotencyKey: d.Key, MovementID", "IdempotencyKey: order.NewID(), MovementID"}}},
		{name: "sold-out-from-memory", on: system.Embedded, fault: "shop-paused",
			about: "buyers are refused by what was read a while ago",
			edits: []edit{{sell, "r.refusal = levels.Cover(r.draft); r.refusal == nil {\n\t\t\tr.next =",
				"r.refusal = order.ErrSoldOut; s.queueOf(r) == &s.selling {\n\t\t\tr.refusal, r.next = nil,"}}},
		{name: "cart-sold-in-part", on: system.Embedded, fault: "shop-paused",
			about: "a cart is sold without the line that is sold out",
			edits: []edit{{sell, "\tif err := b.levels.Cover(r.draft); err != nil {", `	r.draft.Lines = slices.DeleteFunc(r.draft.Lines, func(line order.Line) bool {
		return len(r.draft.Lines) > 1 && b.levels.SKUs[line.SKU].Level.Available < line.Units
	})
	if err := b.levels.Cover(r.draft); err != nil {`}}},
		{name: "order-left-out", on: system.MySQL, fault: "rows-locked",
			about: "an order whose SKU's row is locked is left out of its batch, and answered as placed",
			edits: []edit{{attempt, "} else {\n\t\t\t\tr.next = &s.behind\n\t\t\t}", "}"}}},
		{name: "early-order-kept", on: system.Embedded, fault: "shop-paused",
			about: "an order that a batch has written before its turn stays when it is refused",
			edits: []edit{
				{sell, "missing = append(missing, o)", "wrong, missing = append(wrong, o.ID), append(missing, o)"},
				{sell, "slices.Sorted(maps.Keys(b.early)), missing", "append(wrong, slices.Sorted(maps.Keys(b.early))[:0]...), missing"},
			}},
		{name: "fence-reused", on: system.Embedded, fault: "shop-paused",
			about: "a batch writes the fence of the first lease that its instance had on a SKU, and compares nothing",
			edits: []edit{
				{leases, "// fences returns", "var first = map[string]int64{}\n\n// fences returns"},
				{leases, "fence := l.held.Fence(strategy.Key(sku.Name)); fence > sku.Fence {\n\t\t\tfences[sku.Name] =",
					"fence := cmp.Or(first[sku.Name], l.held.Fence(strategy.Key(sku.Name))); fence > 0 {\n\t\t\tfences[sku.Name], first[sku.Name] = fence,"},
				{take, "AND fence < COALESCE(@fence, fence + 1)", "AND (fence < COALESCE(@fence, fence + 1) OR 1 = 1)"},
			}},
		{name: "leases-depended-on", on: system.MySQL, fault: "leases-left", by: "waits",
			about: "a batch waits for its leases for as long as an order by redis does",
			edits: []edit{{leases, "context.WithTimeout(l.ctx, wait)", "context.WithTimeout(l.ctx, wait+time.Hour)"}}},
		{name: "limit-not-returned", on: system.Embedded, fault: "shop-paused",
			about: "the units of a cancelled order still count against the buyer's purchase limit",
			edits: []edit{{ends, "released.orders()...", "released.orders()[:0]..."}}},
		{name: "sold-out-when-busy", on: system.MySQL, fault: "connections-killed",
			about: "a shop that cannot reach its database says that all is sold",
			edits: []edit{{"internal/httpapi/errors.go", `{order.ErrBusy, 503, "busy", "Database busy", detailUnchanged, later}`, `{order.ErrBusy, 409, "sold-out", "Sold out", "", never}`}}},
		{name: "no-drain", on: system.Embedded, fault: "rolling-restart",
			about: "a shop drops its requests when it is stopped",
			edits: []edit{{"internal/app/shop.go", "Pause(ctx, s.parts.DrainDelay)", "Pause(ctx, 0)"}, {"internal/app/shop.go", "WithTimeout(ctx, s.parts.Drain)", "WithTimeout(ctx, 0)"}}},
	}
}

// controlsNamed returns the controls of these names, or all for which there are servers.
func (c *Command) controlsNamed(names []string) (found []control, err error) {
	for _, control := range allControls() {
		if slices.Contains(names, control.name) || len(names) == 0 && c.has(control.on) {
			found = append(found, control)
		}
		if slices.Contains(names, control.name) && !c.has(control.on) {
			return nil, fmt.Errorf("%s needs servers: add --servers docker", control.name)
		}
	}
	if len(names) > 0 && len(found) != len(names) {
		return nil, fmt.Errorf("not all of %.200q are controls, once each; 'faults list' lists them", names)
	}
	return found, nil
}

// findAll looks for each control: it runs at most this many histories with the mistake, until one has a violation.
func (c *Command) findAll(ctx context.Context, r *runner, controls []control, tries int, out io.Writer) error {
	var rows []table.Row
	missed := false
	for _, control := range controls {
		found, err := c.find(ctx, r, control, tries)
		if err != nil {
			return fmt.Errorf("control %s: %w", control.name, cmp.Or(ctx.Err(), err))
		}
		missed = missed || found == ""
		found = cmp.Or(found, fmt.Sprintf("NOT FOUND in %d", tries))
		rows = append(rows, table.Row{control.name, control.fault, found})
		r.report(control.name + ": " + found)
	}
	if _, err := fmt.Fprint(out, stats.Table(table.Row{"control", "under", ""}, rows, 1, 0)); err != nil {
		return err
	}
	if missed {
		return ErrBroken
	}
	return nil
}

// find returns after how many histories which checks have found the mistake; empty if none did.
func (c *Command) find(ctx context.Context, r *runner, wrong control, tries int) (string, error) {
	if err := r.close(); err != nil {
		return "", err
	}
	r.report("looking for " + wrong.name)
	r.mistake, r.strategies = wrong, wrong.strategies
	f, ok := faultNamed(wrong.fault)
	if !ok {
		return "", fmt.Errorf("no fault %s", wrong.fault)
	}
	for n := range tries {
		h, err := r.runHistory(ctx, f, wrong.on, c.Seed+uint64(n))
		if err != nil {
			return "", err
		}
		var by []string
		for _, v := range h.Violations {
			slow := v.Check == "recovery" || v.Check == "waits" // a slow machine breaks these as well
			if (!slow || v.Check == wrong.by) && !slices.Contains(by, v.Check) {
				r.report(fmt.Sprintf("%s: %s", v.Check, v.Detail))
				by = append(by, v.Check)
			}
		}
		if by != nil {
			return fmt.Sprintf("found after %d: %s", n+1, strings.Join(by, ", ")), nil
		}
	}
	return "", nil
}

// movableClock makes time.Now tell another time, by an environment variable. The monotonic clock, by which durations are
// measured, is left alone.
func movableClock() []edit {
	const now, local = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n", "func initLocal() {\n"
	const read = "var ahead = func() int64 {\n\ttext, _ := syscall.Getenv(\"" + system.ClockVariable + "\")\n\tn, _ := atoi(text)\n\treturn int64(n)\n}()\n\n"
	return []edit{{"time/time.go", now, now + "\tsec += ahead\n"}, {"time/zoneinfo_unix.go", local, read + local}}
}

// change makes the edits in copies of the source files. It returns the list of these for go build -overlay.
func change(ctx context.Context, dir string, edits []edit) (list string, err error) {
	found, err := exec.CommandContext(ctx, "go", "env", "GOMOD", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the sources: %w", err)
	}
	module, goroot, _ := strings.Cut(strings.TrimSpace(string(found)), "\n")
	changed := overlay.Overlay{}
	for _, e := range edits {
		file := filepath.Join(filepath.Dir(module), e.file)
		if strings.HasPrefix(e.file, "time/") {
			file = filepath.Join(goroot, "src", e.file)
		}
		if err := changed.Edit(file, e.old, e.new); err != nil {
			return "", err
		}
	}
	return changed.Write(dir)
}
