package mysqllock

import (
	"cmp"
	"fmt"
	"regexp"
	"time"
)

// Options of a Backend. The zero value is a good one.
type Options struct {
	// Table is the lock table's name, schema.table if it is in another schema:
	// letters, digits and underscores. Default "locks".
	Table string

	// PollMin and PollMax are how long a waiter sleeps between two looks at the
	// row: at first, and at most. Defaults 5 ms and 100 ms.
	PollMin time.Duration
	PollMax time.Duration

	// Keep is for how long the row of a free key is kept. Default 24 h, at least a
	// second; negative: for ever.
	Keep time.Duration
}

var tableName = regexp.MustCompile(`^(\w{1,64}\.)?\w{1,64}$`)

// Validate reports the first option that cannot work, by name.
func (o Options) Validate() error {
	switch d := o.withDefaults(); {
	case !tableName.MatchString(d.Table):
		return fmt.Errorf("mysqllock: Table %q: want letters, digits and underscores, 64 at most", o.Table)
	case d.PollMin < time.Millisecond:
		return fmt.Errorf("mysqllock: PollMin %v: want at least 1ms", o.PollMin)
	case d.PollMax < d.PollMin:
		return fmt.Errorf("mysqllock: PollMax %v: want at least PollMin, %v", o.PollMax, d.PollMin)
	case d.Keep >= 0 && d.Keep < time.Second:
		return fmt.Errorf("mysqllock: Keep %v: want at least 1s, or a negative one for ever", o.Keep)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Table = cmp.Or(o.Table, "locks")
	o.PollMin = cmp.Or(o.PollMin, 5*time.Millisecond)
	o.PollMax = cmp.Or(o.PollMax, max(100*time.Millisecond, o.PollMin))
	o.Keep = cmp.Or(o.Keep, 24*time.Hour)
	return o
}
