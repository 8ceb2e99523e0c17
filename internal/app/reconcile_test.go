package app_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/logs/logbook"
	"example.com/shop/internal/store"
)

// "It runs once a day: a handover does not repeat it, nor leave a night out."
func TestShop_reconciles(t *testing.T) {
	t.Parallel()
	s := embedded(t, 5)
	s.ReconcileAt = time.Now().UTC().Add(12 * time.Hour).Format("15:04") // last night's was 12 hours ago
	begin := func() (*app.Shop, *logbook.Book) {
		book := &logbook.Book{}
		s.Log = slog.New(slog.NewTextHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug}))
		return start(t, s), book
	}
	await := func(book *logbook.Book, text string) {
		t.Helper()
		until(t, text, 30*time.Second, func() bool { return book.Has(text) })
	}
	end := func(shop *app.Shop) {
		t.Helper()
		if err := shop.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	const ran, notDue = "accounts compared", `msg="job is not due" job=reconcile`

	first, book := begin()
	await(book, notDue) // a new shop: tonight comes first
	end(first)

	// Nobody was there last night, and somebody has been at the books.
	change(t, s, "UPDATE job_runs SET ran_at = '2026-01-01 03:00:00.000000'")
	change(t, s, "UPDATE skus SET sold = 1")
	second, book := begin()
	await(book, `level=ERROR msg="accounts compared" job=reconcile skus=1 lines=0 units=0 differences=3 took_ms=`)
	await(book, `level=ERROR msg="accounts differ" job=reconcile invariant=I5 sku=mug order_id="" detail="level says`)
	third, spare := begin()
	end(second)
	await(spare, notDue)
	if spare.Has(ran) {
		t.Error("two instances ran it in one night")
	}
	end(third)

	// The next night, with the books as they should be.
	change(t, s, "UPDATE job_runs SET ran_at = '2026-01-01 03:00:00.000000'")
	change(t, s, "UPDATE skus SET sold = 0")
	_, book = begin()
	await(book, `level=INFO msg="accounts compared" job=reconcile skus=1 lines=0 units=0 differences=0 took_ms=`)
	await(book, `msg="job ran" job=reconcile items=0 took_ms=`)
}

// "or off".
func TestShop_reconcilesNever(t *testing.T) {
	t.Parallel()
	s := embedded(t, 5)
	s.ReconcileAt = "off"
	book := &logbook.Book{}
	s.Log = slog.New(slog.NewTextHandler(book, nil))
	shop := start(t, s)
	until(t, "expiry runs", 30*time.Second, func() bool { return book.Has("job=expiry") })
	if err := shop.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if book.Has("job=reconcile") {
		t.Error("it runs")
	}
}

// change does something behind the shop's back.
func change(t *testing.T, s app.Settings, statement string) {
	t.Helper()
	db, err := store.SQLite(t.Context(), s.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(db)
	if err := db.Exec(statement).Error; err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
