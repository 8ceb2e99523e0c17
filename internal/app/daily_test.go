package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

func TestDaily_latest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ at, now, want string }{
		{"03:00", "2026-03-04T03:00:00Z", "2026-03-04T03:00:00Z"},
		{"03:00", "2026-03-04T02:59:59.999999Z", "2026-03-03T03:00:00Z"},
		{"03:00", "2026-03-04T23:59:59Z", "2026-03-04T03:00:00Z"},
		{"03:00", "2026-03-04T04:30:00+02:00", "2026-03-03T03:00:00Z"}, // 02:30 in UTC
		{"00:00", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"23:59", "2026-03-01T00:00:00Z", "2026-02-28T23:59:00Z"},
	} {
		at, err := parseDaily(c.at)
		if err != nil {
			t.Fatal(err)
		}
		d := daily{at: at}
		if got := d.latest(moment(t, c.now)); !got.Equal(moment(t, c.want)) {
			t.Errorf("%s, as seen from %s: got %v, want %s", c.at, c.now, got, c.want)
		}
	}
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// "A database that has never seen the job waits for the next time", "runs once a
// day": due until it has run, whoever asks.
func TestDaily_due(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		now, err := store.Now(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		// Its time was an hour ago, and does not come while the test runs.
		d := daily{job: "test", at: now.Add(-time.Hour).Sub(now.Truncate(24 * time.Hour)), database: &Database{db: db}}
		if d.at < 0 {
			d.at += 24 * time.Hour
		}
		want := func(what string, want bool) {
			t.Helper()
			for range 2 { // asking changes nothing
				if got, err := d.due(t.Context()); err != nil || got != want {
					t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
				}
			}
		}
		remember := func(at time.Time) {
			t.Helper()
			if err := d.ran(t.Context(), at); err != nil {
				t.Fatal(err)
			}
		}
		want("never seen", false)
		remember(now.Add(-2 * time.Hour))
		want("last run before its time", true)
		remember(now.Add(-30 * 24 * time.Hour))
		want("a month missed", true)
		remember(now)
		want("it has run", false)
		remember(now.Add(time.Hour))
		want("the clock stepped back", false)
	})
}

// "One that failed is due again after retryDaily", on this instance; one that was
// ended, or went well, changes nothing.
func TestDaily_tried(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	failure := errors.New("no answer")
	d := daily{}
	for _, c := range []struct {
		what string
		ctx  context.Context
		err  error
		want bool
	}{
		{"well", t.Context(), nil, false},
		{"ended", ended, failure, false},
		{"failed", t.Context(), failure, true},
		{"failed, then ended", ended, failure, true},
		{"failed, then well", t.Context(), nil, false},
	} {
		d.tried(c.ctx, c.err)
		if got := d.resting(); got != c.want {
			t.Errorf("%s: got resting %v, want %v", c.what, got, c.want)
		}
	}
	d.failed = time.Now().Add(-retryDaily)
	if d.resting() {
		t.Error("got resting when its time is over, want due again")
	}
}

// An audit that cannot succeed is not repeated every minute.
func TestReconciliation_fails(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		now, err := store.Now(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		r := reconciliation{daily: daily{job: "test", database: &Database{db: db}}, log: slog.New(slog.DiscardHandler)}
		if err := r.ran(t.Context(), now.Add(-48*time.Hour)); err != nil {
			t.Fatal(err)
		}
		want := func(want bool) {
			t.Helper()
			if got, err := r.due(t.Context()); err != nil || got != want {
				t.Errorf("got due %v, %v, want %v", got, err, want)
			}
		}
		want(true)
		for _, name := range [][2]string{{"movements", "lost"}, {"lost", "movements"}} {
			if err := db.Migrator().RenameTable(name[0], name[1]); err != nil {
				t.Fatal(err)
			}
			if _, err := r.run(t.Context()); (err == nil) != (name[0] == "lost") {
				t.Errorf("got %v from an audit, %s is now %s", err, name[0], name[1])
			}
			want(false)
		}
		if r.resting() {
			t.Error("got resting after a good run, want only that it has run")
		}
	})
}
