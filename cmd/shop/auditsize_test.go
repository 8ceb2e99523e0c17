package main

import (
	"database/sql"
	"encoding/json"
	"regexp"
	"strconv"
	"testing"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// "The audit streams the rows, so its memory does not grow with the number of orders", nor with the number of
// differences: here are more of these than orders. "The JSON lists the first 1,000 SKUs and differences".
func TestAudit_size(t *testing.T) {
	for _, kind := range []struct {
		name string
		open func(t *testing.T) (db *store.Store, flags []string, err error)
	}{
		{"SQLite", func(t *testing.T) (*store.Store, []string, error) {
			data := t.TempDir()
			db, err := store.SQLite(t.Context(), app.DatabaseFile(data), store.Options{})
			return db, []string{"--data", data}, err
		}},
		{"MySQL", func(t *testing.T) (*store.Store, []string, error) {
			dsn := testserver.MySQL(t)
			db, err := store.MySQL(t.Context(), dsn, store.Options{})
			return db, []string{"--mysql", dsn}, err
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			db, flags, err := kind.open(t)
			testserver.Must(t, err)
			defer db.Close()
			_, err = db.Migrate(t.Context())
			testserver.Must(t, err)
			fill(t, db, *auditOrders)
			measure(t, app.ExitDone, flags...)
			// More differences than orders.
			_, err = db.DB().ExecContext(t.Context(), "UPDATE orders SET status = 'lost'")
			testserver.Must(t, err)
			var report struct {
				Differences []struct{}
				Truncated   bool
			}
			testserver.Must(t, json.Unmarshal([]byte(measure(t, app.ExitFailed, append(flags, "--json")...)), &report))
			if len(report.Differences) != 1_000 || !report.Truncated {
				t.Errorf("got %d differences, truncated %v; want the first 1,000 of them", len(report.Differences), report.Truncated)
			}
		})
	}
}

// fill writes orders as a shop would have left them: of one or two lines, pending, each with its key,
// its fences and its movements.
func fill(t *testing.T, s *store.Store, orders int) {
	t.Helper()
	const skus, chunk = 100, 500
	opened, price := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), stock.Money{Minor: 1250, Currency: "EUR"}
	name := func(n int) string { return fmt.Sprintf("sku-%02d", n%skus) }
	for i := range skus {
		sku, err := stock.NewSKU(name(i), price, 10_000_000, opened)
		testserver.Must(t, errors.Join(err, s.Create(t.Context(), sku)))
	}
	for from := 0; from < orders; from += chunk {
		var claims []order.UsedKey
		var written []order.Order
		var movements []stock.Movement
		for n := from; n < min(from+chunk, orders); n++ {
			at, lines := opened.Add(time.Duration(n)*time.Millisecond), 1+n/10%2
			d := order.Order{
				ID: newID(), Buyer: fmt.Sprint("buyer-", n%10_000), Key: fmt.Sprint("key-", n), Status: order.Pending,
				Total: stock.Money{Minor: int64(2*lines) * price.Minor, Currency: price.Currency}, CreatedAt: at, ExpiresAt: at.Add(time.Hour),
			}
			for line := range lines {
				sku := name(n + 37*line)
				d.Lines = append(d.Lines, order.Line{SKU: sku, Units: 2, Price: price})
				movements = append(movements, stock.Movement{
					ID: newID(), SKU: sku, Kind: stock.Reserve, OrderID: d.ID, Level: stock.Reserve.Change(2), Fence: int64(n + 1), At: at,
				})
			}
			claims = append(claims, order.UsedKey{Order: d, Fingerprint: order.Fingerprint(d.Lines)})
			written = append(written, d)
		}
		testserver.Must(t, s.InTx(t.Context(), func(tx order.Tx) error {
			if _, err := tx.ClaimKeys(claims...); err != nil {
				return err
			}
			if err := tx.Insert(written...); err != nil {
				return err
			}
			return tx.Record(movements...)
		}))
	}
	_, err := s.DB().ExecContext(t.Context(), `UPDATE skus SET
		available = (SELECT SUM(m.available) FROM movements AS m WHERE m.sku = skus.name),
		reserved = (SELECT SUM(m.reserved) FROM movements AS m WHERE m.sku = skus.name),
		fence = (SELECT MAX(m.fence) FROM movements AS m WHERE m.sku = skus.name)`)
	testserver.Must(t, err)

	r := shopWith(t, []string{"GODEBUG=gctrace=1"}, "audit", "--data", data, "--json")
	r.want(t, app.ExitFailed)
	var report struct {
		Differences []struct{}
		Truncated   bool
	}
	testserver.Must(t, json.Unmarshal([]byte(r.stdout), &report))
	if len(report.Differences) != 1_000 || !report.Truncated {
		t.Errorf("got %d differences, truncated %v, want the first 1,000 of them", len(report.Differences), report.Truncated)
	}
	collections := regexp.MustCompile(` (\d+)->\d+->\d+ MB, `).FindAllStringSubmatch(r.stderr, -1)
	if len(collections) == 0 {
		t.Errorf("got %s, want the trace of the garbage collector", r.stderr)
	}
	for _, c := range collections {
		if heap, err := strconv.Atoi(c[1]); err != nil || heap > limit {
			t.Errorf("got a heap of %s MB, %v, want at most %d", c[1], err, limit)
		}
	}
}
