package app_test

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// "It runs once a day, even if Redis loses its data or instances change. If no instance runs at that
// time, it runs later."
func TestShop_reconciles(t *testing.T) {
	t.Parallel()
	s := embedded(t, 5)
	s.ReconcileAt = time.Now().UTC().Add(12 * time.Hour).Format("15:04") // last night's was 12 hours ago
	begin := func() (*app.Shop, *testserver.LogBuffer) {
		book := &testserver.LogBuffer{}
		s.Log = slog.New(slog.NewTextHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug}))
		return start(t, s), book
	}
	await := func(book *testserver.LogBuffer, text string) {
		t.Helper()
		testserver.Until(t, text, 30*time.Second, func() bool { return book.Has(text) })
	}
	end := func(shop *app.Shop) {
		t.Helper()
		testserver.Must(t, shop.Shutdown(context.Background()))
	}
	const ran = "accounts compared"

	first, book := begin()
	await(book, ran+`" job=reconcile skus=1 differences=0 took_ms=`)
	end(first)
	second, spare := begin()
	await(spare, `msg="job runs here" job=reconcile`)
	end(second)
	if spare.Has(ran) {
		t.Error("two instances ran it in one night")
	}

	// The next night, and the accounts were tampered with.
	change(t, s, "UPDATE job_runs SET day = '2026-01-01'")
	change(t, s, "UPDATE skus SET sold = 1")
	third, book := begin()
	await(book, `level=ERROR msg="accounts compared" job=reconcile skus=1 differences=3 took_ms=`)
	await(book, `level=ERROR msg="accounts differ" job=reconcile invariant=I5 sku=mug order_id="" detail="level says`)
	await(book, `msg="job ran" job=reconcile items=3 took_ms=`)
	end(third)

	// "If a run fails, [...] it is repeated in the next hour."
	change(t, s, "UPDATE job_runs SET day = '2026-01-02' WHERE day > '2026-01-01'")
	change(t, s, "UPDATE skus SET fence = 'no number'")
	fourth, book := begin()
	await(book, `msg="job fails here" job=reconcile errors=1 error="audit: `)
	end(fourth)
	change(t, s, "UPDATE skus SET fence = 0")
	fifth, book := begin()
	await(book, `msg="job fails here" job=reconcile errors=1 error="the audit of this hour has not been completed`)
	end(fifth)
	change(t, s, "UPDATE job_runs SET job = 'reconcile, another hour' WHERE day > '2026-01-02'")
	_, book = begin()
	await(book, ran+`" job=reconcile`)
}

// change does something behind the shop's back.
func change(t *testing.T, s app.Settings, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", app.DatabaseFile(s.Data)+"?_pragma=busy_timeout(30000)")
	testserver.Must(t, err)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
