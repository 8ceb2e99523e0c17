package app_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"example.com/shop/internal/testserver"
)

// "One instance deletes the idempotency keys that are older than Settings.KeepKeys, at most ten minutes later. Each job
// reports its work in the log and in the metrics." A purged key makes a new order.
func TestShop_purgesKeys(t *testing.T) {
	t.Parallel()
	s := embedded(t, 5)
	s.KeepKeys, s.ReconcileAt = time.Hour, "off"
	first := start(t, s)
	var orders [3]struct{ ID string }
	for i, key := range []string{"old", "young"} {
		buy(t, first, key).Want(t, http.StatusCreated).Decode(t, &orders[i])
	}
	testserver.Must(t, first.Shutdown(context.Background()))
	for table, where := range map[string]string{"orders": "id", "idempotency_keys": "order_id"} {
		change(t, s, "UPDATE "+table+" SET created_at = '2020-01-01 00:00:00.000000' WHERE "+where+" = '"+orders[0].ID+"'")
	}

	log := &testserver.LogBuffer{}
	s.Log = slog.New(slog.NewTextHandler(log, nil))
	again := start(t, s)
	testserver.Until(t, "keys are purged", patience, func() bool { return log.Has(`msg="job ran" job=keys items=1`) })
	buy(t, again, "old").Want(t, http.StatusCreated).Decode(t, &orders[2])
	if orders[2].ID == orders[0].ID {
		t.Error("a purged key was replayed")
	}
	buy(t, again, "young").Want(t, http.StatusCreated).Decode(t, &orders[2])
	if orders[2].ID != orders[1].ID {
		t.Error("a young key made a new order")
	}
	wantAudit(t, again, 3)
	if log.Has("job=reconcile") {
		t.Errorf("got log %s, want no nightly audit", log)
	}
}
