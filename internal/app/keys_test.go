package app_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/logs/logbook"
	"example.com/shop/internal/store"
)

// "One deletes the idempotency keys that are older than Settings.KeepKeys, and
// says in the log how many." Then a key makes a new order.
func TestShop_purgesKeys(t *testing.T) {
	t.Parallel()
	s := embedded(t, 5)
	s.KeepKeys = time.Hour
	first := start(t, s)
	var orders [3]struct{ ID string }
	for i, key := range []string{"old", "young"} {
		w, err := buy(t, first, key)
		wantStatus(t, w, err, http.StatusCreated)
		decodeAnswer(t, w, &orders[i])
	}
	if err := first.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	db, err := store.SQLite(t.Context(), s.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	for table, where := range map[string]string{"orders": "id", "idempotency_keys": "order_id"} {
		if err := db.Exec("UPDATE "+table+" SET created_at = '2020-01-01 00:00:00.000000' WHERE "+where+" = ?", orders[0].ID).Error; err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(db); err != nil {
		t.Fatal(err)
	}

	var shops []*app.Shop
	books := []*logbook.Book{{}, {}, {}}
	for _, book := range books {
		s.Log = slog.New(slog.NewTextHandler(book, nil))
		shops = append(shops, start(t, s))
	}
	said := func(text string) (times int) {
		for _, book := range books {
			if book.Has(text) {
				times++
			}
		}
		return times
	}
	until(t, "keys are purged", 30*time.Second, func() bool { return said(`msg="job ran" job=keys items=1 `) == 1 })
	if n := said(`msg="job runs here" job=keys`); n != 1 {
		t.Errorf("%d instances run the job, want 1", n)
	}
	w, err := buy(t, shops[0], "old")
	wantStatus(t, w, err, http.StatusCreated)
	decodeAnswer(t, w, &orders[2])
	if orders[2].ID == orders[0].ID {
		t.Error("a purged key was replayed")
	}
	w, err = buy(t, shops[0], "young")
	wantStatus(t, w, err, http.StatusCreated)
	decodeAnswer(t, w, &orders[2])
	if orders[2].ID != orders[1].ID {
		t.Error("a young key made a new order")
	}
	wantAudit(t, shops[0], 3)
}
