package mysqllock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	sweepEvery = time.Minute      // of each process at most
	sweepRows  = 500              // looked at in one step
	sweepLimit = 10 * time.Second // of one step
)

// sweeper is when the next step of the clean-up is due, and where.
type sweeper struct {
	mu      sync.Mutex
	last    time.Time
	after   []byte // the last name that was looked at
	cancel  context.CancelFunc
	done    chan struct{} // closed when the step under way has ended; nil: none is
	stopped bool
}

// Sweep looks at the next rows by name, 500 at most, and deletes those of keys
// that have been free, and whose fence the clock has left behind, for
// Options.Keep. It returns how many. After the last name it begins again with the
// first. Backends do this by themselves, once a minute at most, after a release;
// call it to have it done sooner.
func (b *Backend) Sweep(ctx context.Context) (removed int, err error) {
	if b.opt.Keep < 0 {
		return 0, nil
	}
	b.sweep.mu.Lock()
	after := b.sweep.after
	b.sweep.mu.Unlock()

	unused, after, err := b.unused(ctx, after)
	for _, name := range unused {
		if err != nil {
			break
		}
		err = retry(ctx, func() error {
			// The row may have been used since: the DELETE looks again.
			result, err := b.db.ExecContext(ctx, b.sql.remove, name, b.opt.Keep.Microseconds(), b.opt.Keep.Microseconds())
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			removed += int(n)
			return err
		})
	}
	if err != nil {
		return removed, fmt.Errorf("mysqllock: sweep: %w", err)
	}
	b.sweep.mu.Lock()
	defer b.sweep.mu.Unlock()
	b.sweep.after = after
	return removed, nil
}

// unused lists the names behind after that can go, and tells how far it came:
// nil, if to the end.
func (b *Backend) unused(ctx context.Context, after []byte) (names [][]byte, last []byte, err error) {
	keep := b.opt.Keep.Microseconds()
	if after == nil {
		after = []byte{}
	}
	rows, err := b.db.QueryContext(ctx, b.sql.list, keep, keep, after, sweepRows)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = rows.Close() }()
	seen := 0
	for rows.Next() {
		var name []byte
		var unused bool
		if err := rows.Scan(&name, &unused); err != nil {
			return nil, nil, err
		}
		if unused {
			names = append(names, name)
		}
		last = name
		seen++
	}
	if seen < sweepRows {
		last = nil
	}
	return names, last, rows.Err()
}

// sweepNow takes a step in the background if one is due.
func (b *Backend) sweepNow() {
	s := &b.sweep
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.IsZero() {
		s.last = time.Now() // not with the first release: processes that come and go need not sweep
	}
	if b.opt.Keep < 0 || s.stopped || s.done != nil || time.Since(s.last) < sweepEvery {
		return
	}
	s.last = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), sweepLimit)
	done := make(chan struct{})
	s.cancel, s.done = cancel, done
	go func() {
		defer close(done)
		defer cancel()
		_, _ = b.Sweep(ctx) // what fails now is done in a minute, by this process or another
		s.mu.Lock()
		defer s.mu.Unlock()
		s.done = nil
	}()
}

// close ends the step under way, and waits for that.
func (s *sweeper) close() {
	s.mu.Lock()
	s.stopped = true
	done := s.done
	if done != nil {
		s.cancel()
	}
	s.mu.Unlock()
	if done != nil {
		<-done
	}
}
