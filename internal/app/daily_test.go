package app

import (
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

// "One that fails is tried again [...] by the same one an hour later", not when it is
// next looked whether it is due; where that is not known, it is looked again soon.
func TestReconciliation_fails(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *gorm.DB) {
		now, err := store.Now(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		p := &parts{metrics: newMetrics(), database: &Database{db: db}}
		s := Default()
		s.Log = slog.New(slog.DiscardHandler)
		audit := p.reconciliation(s)
		last := daily{job: audit.name, database: p.database}
		if err := last.ran(t.Context(), now.Add(-48*time.Hour)); err != nil {
			t.Fatal(err)
		}
		rename := func(name, to string) {
			t.Helper()
			if err := db.Migrator().RenameTable(name, to); err != nil {
				t.Fatal(err)
			}
		}
		want := func(what string, again time.Duration) {
			t.Helper()
			if got := audit.once(t.Context()); got != again {
				t.Errorf("%s: got another try after %v, want %v", what, got, again)
			}
		}
		rename("job_runs", "lost")
		want("it is not known when it last ran", reconcileLook)
		rename("lost", "job_runs")
		rename("movements", "lost")
		want("it fails", retryDaily)
		rename("lost", "movements")
		if due, err := audit.due(t.Context()); err != nil || !due {
			t.Errorf("got due %v, %v after a run that failed, want true", due, err)
		}
		want("it goes well", 0)
		if due, err := audit.due(t.Context()); err != nil || due {
			t.Errorf("got due %v, %v after a good run, want false", due, err)
		}
	})
}
