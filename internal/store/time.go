package store

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// timeLayout is what a DATETIME(6) column takes and what SQLite keeps as text.
// All times have the same length, so that text sorts as time does.
const timeLayout = "2006-01-02 15:04:05.000000"

// Time is a column of type DATETIME(6): UTC, whole microseconds. It is for rows
// alone: SQLite's driver hands such a column over as text, MySQL's as a time.
type Time struct{ time.Time }

// Value is what is written: UTC, cut to the microsecond.
func (t Time) Value() (driver.Value, error) {
	return t.UTC().Format(timeLayout), nil
}

// Scan reads what either driver has.
func (t *Time) Scan(value any) error {
	switch v := value.(type) {
	case time.Time:
		t.Time = v.UTC()
	case string:
		parsed, err := time.Parse(timeLayout, v)
		if err != nil {
			return fmt.Errorf("column DATETIME(6): %w", err)
		}
		t.Time = parsed
	default:
		return fmt.Errorf("column DATETIME(6): want a time or text, got %T", value)
	}
	return nil
}
