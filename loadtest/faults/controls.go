package faults

import (
	"cmp"
	"context"
	"errors"
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

// tries is the number of histories in which a control must be found.
const tries = 200

// control is a mistake that the suite must catch: in the shop, in its clients, or in the database behind it.
type control struct {
	name  string
	on    system.Kind // the servers
	fault string      // the fault under which the mistake shows
	about string
	edits edits // of the shop's source; nil: the mistake is not in the shop
}

// edits are changes of source files. Each old text occurs exactly once in its file.
type edits []struct{ file, old, new string }

// keyForgotten is a control that needs more than its edits: the clients make the mistake.
const keyForgotten = "retry-without-key"

// timed are controls that only a check of a time finds, which a slow machine also breaks.
var timed = []string{ //nolint:gochecknoglobals // a table
	"leases-depended-on", "locked-row-awaited", "gap-awaited", "idle-transaction-kept", "migration-waits",
}

// allControls is the table. Adding a control is adding a row.
func allControls() []control {
	const (
		take, tx, orders, keys, skus = "internal/store/stock.go", "internal/store/tx.go", "internal/store/orders.go", "internal/store/keys.go", "internal/store/skus.go"
		single, redis, leases        = "internal/order/strategy/shop.go", "internal/order/strategy/redis.go", "internal/order/batch/leases.go"
		attempt, sell, ends          = "internal/order/batch/attempt.go", "internal/order/batch/sell.go", "internal/order/batch/end.go"
		payment, payments, dsn       = "internal/order/payment.go", "internal/store/payments.go", "internal/store/dsn.go"
		open, shared                 = "internal/store/open.go", "SET innodb_lock_wait_timeout = 1"
		sent                         = "done := db.Exec(statement, values...)\n"
		pending                      = "found.Status == order.Pending && found.Due == (e.As == order.Expired)"
	)
	return []control{
		{"asynchronous-replica", system.Replica, "replica-promoted", "an asynchronous replica takes over from a killed MySQL", nil},
		{"commits-not-flushed", system.MySQL, "mysql-killed-unflushed", "MySQL acknowledges commits before they are on disk, and is killed", nil},

		{keyForgotten, system.Embedded, "shop-killed", "clients ask again with a new idempotency key", nil},
		{"early-release", system.Embedded, "shop-paused",
			"the lock is released before the commit, and the UPDATE compares nothing", edits{
				{redis, "ctx = leases.Context() ", "_ = leases.Context() "},
				{redis, "return s.raisingFence(", "_ = leases.Release()\n\treturn s.raisingFence("},
				{redis, "stock.Fenced", "stock.Overwrite"},
				{redis, "return s.InTime(leases)", "return nil"},
			}},

		{"fence-unchecked", system.Embedded, "redis-flushed", "the UPDATE does not compare the fence",
			edits{{take, "available >= ? AND fence < ?", "available >= ? AND (fence < ? OR 1 = 1)"}}}, // the arguments stay
		{"success-unknown", system.MySQL, "commit-not-sent", "a COMMIT without an answer counts as done",
			edits{{tx, `return fmt.Errorf("%w: %w", order.ErrUnknownOutcome, err)`, "return nil"}}},
		{"lock-wait-ignored", system.MySQL, "skus-locked",
			"a statement that waited too long for a row (1205) counts as done, and the rest is committed",
			edits{{take, sent, sent + "\tif classify(done.Error) == lockWait {\n\t\treturn nil\n\t}\n"}}},
		{"locked-row-awaited", system.MySQL, "units-locked", "a batch waits for a locked row instead of leaving out the request that needs the row",
			edits{{orders, "Strength: clause.LockingStrengthUpdate, Options: clause.LockingOptionsNoWait", "Strength: clause.LockingStrengthUpdate"},
				{open, shared, shared + " + 4"}}},
		{"gap-awaited", system.MySQL, "ledger-gap-locked", "a batch waits for a locked gap for as long as the request that needs the gap",
			edits{{open, shared, shared + " + 4"}}},
		{"idle-transaction-kept", system.MySQL, "shop-stopped", "MySQL keeps the transaction of a stopped shop for 90 s",
			edits{{dsn, "strconv.Itoa(int(idleInTx", "strconv.Itoa(88 + int(idleInTx"}}},
		{"migration-waits", system.MySQL, "upgrade", "`migrate` waits for a table for a minute, and orders wait behind it",
			edits{{"internal/store/migrate.go", "SET SESSION lock_wait_timeout = 2", "SET SESSION lock_wait_timeout = 60"}}},
		{"table-lock-awaited", system.MySQL, "read-locked", "a statement waits for a locked table for as long as MySQL lets it, and stays on the server when its client has left",
			edits{{dsn, "\"lock_wait_timeout\": \"5\"", "\"lock_wait_timeout\": \"31536000\""}}},
		{"deadlock-statement-repeated", system.MySQL, "deadlocks",
			"after a deadlock (1213) the statement is repeated, and not the transaction that was rolled back",
			edits{{take, sent, sent + "\tif classify(done.Error) == conflict {\n\t\tdone = db.Exec(statement, values...)\n\t}\n"}}},
		{"key-outside-transaction", system.MySQL, "shop-killed", "the idempotency key is committed before the order",
			edits{{keys, "t.db.Exec(\"INSERT INTO `idempotency_keys`", "t.store.db.Exec(\"INSERT INTO `idempotency_keys`"}}},
		{"key-ignored", system.Embedded, "shop-killed", "a repeated idempotency key is a new order",
			edits{{keys, "c.Order.Buyer, c.Order.Key, c.Fingerprint", "c.Order.Buyer, c.Order.ID, c.Fingerprint"}}},
		{"second-payment-accepted", system.Embedded, "shop-paused",
			"another payment of a paid order is answered as the one that paid it",
			edits{{payment, "case f.Status == Paid:\n\t\treturn ErrAlreadyPaid.Code", "case f.Status == Paid:\n\t\treturn \"\""}}},
		{"expired-order-paid", system.Embedded, "shop-paused", "an order is paid although it has expired", edits{
			{payment, "case f.Status == Expired || f.Due:\n\t\treturn ErrExpired.Code", "case f.Status == Expired:\n\t\treturn ErrExpired.Code"},
			{ends, pending, "(" + pending + " || found.Status == order.Pending && e.As == order.Paid)"},
		}},
		{"amount-not-compared", system.Embedded, "shop-paused", "a payment of a wrong amount pays an order",
			edits{{payment, "case f.Total != amount:\n\t\treturn ErrAmountMismatch.Code", "case f.Total != amount:\n\t\treturn \"\""}}},
		{"payment-forgotten", system.Embedded, "shop-paused", "a payment is on record for a second",
			edits{{payments, "	idOf := func", `	if err := t.db.Exec("DELETE FROM payments WHERE created_at < ?", dbTime{time.Now().Add(-time.Second)}).Error; err != nil {
		return nil, nil, err
	}
	idOf := func`}}},
		{"expiry-of-paid-orders", system.Embedded, "shop-paused", "the sweep expires orders that were paid", edits{
			{orders, `"status = ? AND expires_at <= "+s.clock, order.Pending`, `"status IN ? AND expires_at <= "+s.clock, []order.Status{order.Pending, order.Paid}`},
			{orders, "WHERE id IN ? AND status = ?", "WHERE id IN ? AND (status = ? OR 1 = 1)"},
			{ends, pending, "(" + pending + " || found.Status == order.Paid && found.Due && e.As == order.Expired)"},
		}},
		{"expiry-by-own-clock", system.Embedded, "clocks-apart",
			"a shop's own clock decides whether an order can still be paid",
			edits{{orders, `expires_at <= "+t.store.clock+" AS due`, `expires_at <= '"+ownNow()+"' AS due`},
				{orders, "// dbTime is", "func ownNow() string { return time.Now().UTC().Format(timeLayout) }\n\n// dbTime is"}}},
		{"units-not-returned", system.Embedded, "shop-paused", "a cancelled order's units stay reserved", edits{
			{take, "\t\tchanges[\"supplied\"]", "\t\tif m.Kind == stock.Release {\n\t\t\tm.Level = stock.Level{}\n\t\t}\n\t\tchanges[\"supplied\"]"},
			{take, "\tdone := t.db.Exec(\"UPDATE skus SET \"+strings", "\tif len(set) == 0 {\n\t\treturn t.Record(movements...)\n\t}\n\tdone := t.db.Exec(\"UPDATE skus SET \"+strings"},
		}},
		{"ledger-incomplete", system.Embedded, "shop-paused", "the ledger lacks a cart's second line",
			edits{{single, "d.Movements(stock.Reserve, fences, d.CreatedAt)...", "d.Movements(stock.Reserve, fences, d.CreatedAt)[:1]..."}}},
		{"delivery-counted-twice", system.MySQL, "commit-not-answered", "a delivery that is sent again counts again",
			edits{{skus, "IdempotencyKey: d.Key, MovementID", "IdempotencyKey: order.NewID(), MovementID"}}},
		{"sold-out-from-memory", system.Embedded, "shop-paused", "buyers are refused by what was read a while ago",
			edits{{sell, "r.refusal = levels.Cover(r.draft); r.refusal == nil {\n\t\t\tr.next =",
				"r.refusal = order.ErrSoldOut; s.queueOf(r) == &s.selling {\n\t\t\tr.refusal, r.next = nil,"}}},
		{"cart-sold-in-part", system.Embedded, "shop-paused", "a cart is sold without the line that is sold out",
			edits{{sell, "\tif err := b.levels.Cover(r.draft); err != nil {", `	r.draft.Lines = slices.DeleteFunc(r.draft.Lines, func(line order.Line) bool {
		return len(r.draft.Lines) > 1 && b.levels.SKUs[line.SKU].Available < line.Units
	})
	if err := b.levels.Cover(r.draft); err != nil {`}}},
		{"order-left-out", system.MySQL, "skus-locked",
			"an order whose SKU's row is locked is left out of its batch, and answered as placed",
			edits{{attempt, "} else {\n\t\t\t\tr.next = &s.behind\n\t\t\t}", "}"}}},
		{"early-order-kept", system.Embedded, "shop-paused",
			"an order that a batch has written before its turn stays when it is refused", edits{
				{sell, "missing = append(missing, o)", "wrong, missing = append(wrong, o.ID), append(missing, o)"},
				{sell, "slices.Sorted(maps.Keys(b.early)), missing", "append(wrong, slices.Sorted(maps.Keys(b.early))[:0]...), missing"},
			}},
		{"fence-reused", system.Embedded, "shop-paused",
			"a batch writes the fence of the first lease that its instance had on a SKU, and compares nothing", edits{
				{leases, "// fences returns", "var first = map[string]int64{}\n\n// fences returns"},
				{leases, "fence := l.held.Fence(strategy.Key(sku.Name)); fence > sku.Fence {\n\t\t\tfences[sku.Name] =",
					"fence := cmp.Or(first[sku.Name], l.held.Fence(strategy.Key(sku.Name))); fence > 0 {\n\t\t\tfences[sku.Name], first[sku.Name] = fence,"},
				{take, "AND fence < COALESCE(@fence, fence + 1)", "AND (fence < COALESCE(@fence, fence + 1) OR 1 = 1)"},
			}},
		{"leases-depended-on", system.MySQL, "leases-left", "a batch waits for its leases for as long as an order by redis does",
			edits{{leases, "context.WithTimeout(l.ctx, wait)", "context.WithTimeout(l.ctx, wait+time.Hour)"}}},
		{"limit-not-returned", system.Embedded, "shop-paused",
			"the units of a cancelled order still count against the buyer's purchase limit",
			edits{{ends, "b.where(releases).orders()...))", "b.where(releases).orders()[:0]...))"}}},
		{"sold-out-when-busy", system.MySQL, "connections-killed",
			"a shop that cannot reach its database says that all is sold",
			edits{{"internal/httpapi/errors.go", `{order.ErrBusy, 503, "busy", "Database busy", detailUnchanged, later}`, `{order.ErrBusy, 409, "sold-out", "Sold out", "", never}`}}},
		{"no-drain", system.Embedded, "rolling-restart", "a shop drops its requests when it is stopped",
			edits{{"internal/app/shop.go", "Pause(ctx, s.parts.DrainDelay)", "Pause(ctx, 0)"}, {"internal/app/shop.go", "WithTimeout(ctx, s.parts.Drain)", "WithTimeout(ctx, 0)"}}},
	}
}

// controlsNamed returns the controls with these names or, without names, all controls for which there are servers.
func (c *Command) controlsNamed(names []string) (found []control, err error) {
	for _, control := range allControls() {
		named := slices.Contains(names, control.name)
		if named && !c.has(control.on) {
			return nil, fmt.Errorf("%s needs servers: add --servers docker", control.name)
		}
		if named || len(names) == 0 && c.has(control.on) {
			found = append(found, control)
		}
	}
	if len(names) > 0 && len(found) != len(names) {
		return nil, fmt.Errorf("%.200q: want names of controls, each once; 'faults list' lists the controls", names)
	}
	return found, nil
}

// findAll looks for each control: it runs at most tries histories with the mistake, until one has a violation.
func (c *Command) findAll(ctx context.Context, progress func(string), controls []control, tries int, out io.Writer) error {
	var rows []table.Row
	missed := false
	for _, control := range controls {
		progress("looking for " + control.name)
		found, err := c.find(ctx, progress, control, tries)
		if err != nil {
			return fmt.Errorf("control %s: %w", control.name, cmp.Or(ctx.Err(), err))
		}
		missed = missed || found == ""
		found = cmp.Or(found, fmt.Sprintf("NOT FOUND in %d", tries))
		rows = append(rows, table.Row{control.name, control.fault, found})
		progress(control.name + ": " + found)
	}
	_, err := fmt.Fprint(out, stats.Table(table.Row{"control", "under", ""}, rows, 1, 0))
	if err == nil && missed {
		err = ErrBroken
	}
	return err
}

// find returns the number of histories until the mistake was found and the checks that found it, or "" if none did.
func (c *Command) find(ctx context.Context, progress func(string), wrong control, tries int) (found string, err error) {
	r := newRunner(progress)
	r.mistake = wrong
	defer func() { err = errors.Join(err, r.close()) }()
	f, _ := faultNamed(wrong.fault)
	f.on = wrong.on
	for n := range tries {
		h, err := r.runHistory(ctx, f, c.Seed+uint64(n))
		if err != nil {
			return "", err
		}
		var by []string
		for _, v := range h.Violations {
			slow := v.Check == "recovery" || (v.Check == "waits" || v.Check == "sales") && !slices.Contains(timed, wrong.name)
			if !slow && !slices.Contains(by, v.Check) {
				progress(fmt.Sprintf("%s: %s", v.Check, v.Detail))
				by = append(by, v.Check)
			}
		}
		if by != nil {
			return fmt.Sprintf("found after %d: %s", n+1, strings.Join(by, ", ")), nil
		}
	}
	return "", nil
}

// movableClock shifts time.Now by an environment variable. The monotonic clock, which measures durations, stays.
func movableClock() edits {
	const now, local = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n", "func initLocal() {\n"
	const read = "var ahead = func() int64 {\n\ttext, _ := syscall.Getenv(\"" + system.ClockVariable + "\")\n\tn, _ := atoi(text)\n\treturn int64(n)\n}()\n\n"
	return edits{{"time/time.go", now, now + "\tsec += ahead\n"}, {"time/zoneinfo_unix.go", local, read + local}}
}

// change returns the changed text of each source file that the edits are about.
func change(ctx context.Context, changes edits) (overlay.Overlay, error) {
	found, err := exec.CommandContext(ctx, "go", "env", "GOMOD", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find the sources: %w", err)
	}
	module, goroot, _ := strings.Cut(strings.TrimSpace(string(found)), "\n")
	changed := overlay.Overlay{}
	for _, e := range changes {
		file := filepath.Join(filepath.Dir(module), e.file)
		if strings.HasPrefix(e.file, "time/") {
			file = filepath.Join(goroot, "src", e.file)
		}
		if err := changed.Edit(file, e.old, e.new); err != nil {
			return nil, err
		}
	}
	return changed, nil
}
