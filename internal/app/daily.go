package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/shop/internal/store"
)

// off is the time of a daily job that does not run.
const off = "off"

// daily says when a job runs that runs once a day. It goes by the database's
// clock and remembers its runs there: neither a handover to another instance nor
// a lock server that forgets makes it run twice or leave a day out.
type daily struct {
	job      string
	at       time.Duration // since midnight, UTC
	database *Database
}

// retryDaily is after how long a run that failed is tried again on the same instance.
// It lets what made it fail pass: what takes an hour must not be tried every minute.
const retryDaily = time.Hour

// parseDaily reads a time such as 03:00.
func parseDaily(at string) (time.Duration, error) {
	t, err := time.Parse("15:04", at)
	if err != nil {
		return 0, fmt.Errorf("%q: want a time of day in UTC such as 03:00, or %s", at, off)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}

// latest returns when the job was last to run, as seen from now.
func (d *daily) latest(now time.Time) time.Time {
	today := now.UTC().Truncate(24 * time.Hour).Add(d.at)
	if today.After(now) {
		return today.Add(-24 * time.Hour)
	}
	return today
}

// due reports whether the job has not run since it last was to. A database that
// has never seen the job waits for the next time.
func (d *daily) due(ctx context.Context) (bool, error) {
	now, err := store.Now(ctx, d.database.db)
	if err != nil {
		return false, err
	}
	var last jobRunRow
	err = d.database.db.WithContext(ctx).Where("job = ?", d.job).Take(&last).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return false, d.ran(ctx, now)
	}
	if err != nil {
		return false, fmt.Errorf("read when job %s last ran: %w", d.job, err)
	}
	return last.RanAt.Before(d.latest(now)), nil
}

// ran remembers a run by when it began.
func (d *daily) ran(ctx context.Context, at time.Time) error {
	row := jobRunRow{Job: d.job, RanAt: store.Time{Time: at}}
	err := d.database.db.WithContext(ctx).Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
	if err != nil {
		return fmt.Errorf("remember that job %s ran: %w", d.job, err)
	}
	return nil
}

type jobRunRow struct {
	Job   string `gorm:"primaryKey"`
	RanAt store.Time
}

func (jobRunRow) TableName() string { return "job_runs" }
