package tape

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxTapes = 64               // on a shelf; the oldest goes first
	news     = 10 * time.Second // how long Look waits for a change
)

// Request is what is to be recorded.
type Request struct {
	Name string
	Stop string // kind:word, such as sql:COMMIT or step:read; empty for none
	SKUs []string
}

// Shelf keeps the tapes of a shop. It may be used by many goroutines at once.
type Shelf struct {
	size atomic.Int32 // of tapes; nothing is looked for on an empty shelf

	mu    sync.Mutex
	tapes []*Tape // the latest last
}

// NewShelf returns an empty one.
func NewShelf() *Shelf { return &Shelf{} }

var (
	nameRule = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	stopRule = regexp.MustCompile(`^(step:[a-z-]{1,32}|(redis|sql):[A-Z]{1,32})$`)
)

// Record begins a tape and returns a context for the request. Call End when it has
// its answer. The error is an ErrInvalid.
func (s *Shelf) Record(ctx context.Context, r Request) (context.Context, *Tape, error) {
	switch {
	case !nameRule.MatchString(r.Name):
		return nil, nil, fmt.Errorf("%w: name %.80q: want 1 to 64 of a-z, 0-9, '-'", ErrInvalid, r.Name)
	case r.Stop != "" && !stopRule.MatchString(r.Stop):
		return nil, nil, fmt.Errorf("%w: stop %.80q: want step:read, redis:DEL, sql:COMMIT or the like", ErrInvalid, r.Stop)
	}
	t := newTape(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(r.Name) != nil {
		return nil, nil, fmt.Errorf("%w: there is a tape called %s already", ErrInvalid, r.Name)
	}
	s.tapes = append(s.tapes, t)
	if extra := len(s.tapes) - maxTapes; extra > 0 {
		s.tapes = slices.Delete(s.tapes, 0, extra)
	}
	s.size.Store(int32(len(s.tapes)))
	return context.WithValue(ctx, tapeKey{}, t), t, nil
}

// Look returns what the tape has, as soon as its version is higher than the one
// that was seen before, or after a while as it is.
func (s *Shelf) Look(ctx context.Context, name string, seen int) (Seen, error) {
	t, err := s.get(name)
	if err != nil {
		return Seen{}, err
	}
	patience := time.NewTimer(news)
	defer patience.Stop()
	for {
		now, changed := t.look()
		if now.Version > seen {
			return now, nil
		}
		select {
		case <-changed:
		case <-patience.C:
			return now, nil
		case <-ctx.Done():
			return now, nil
		}
	}
}

// Resume lets a request go on that is stopped, or will be. It is safe to call again.
func (s *Shelf) Resume(name string) error {
	t, err := s.get(name)
	if err == nil {
		t.resume()
	}
	return err
}

func (s *Shelf) get(name string) (*Tape, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.find(name); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%w: %.80q", ErrNotFound, name)
}

// find wants s.mu to be held.
func (s *Shelf) find(name string) *Tape {
	i := slices.IndexFunc(s.tapes, func(t *Tape) bool { return t.name == name })
	if i < 0 {
		return nil
	}
	return s.tapes[i]
}

// of returns the tape that a command belongs to: that of its context, or else the
// latest about a SKU that the command names; nil for none.
func (s *Shelf) of(ctx context.Context, arguments func(yield func(string) bool)) *Tape {
	if s.size.Load() == 0 {
		return nil
	}
	if t := Of(ctx); t != nil {
		return t
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range slices.Backward(s.tapes) {
		for argument := range arguments {
			if slices.ContainsFunc(t.skus, func(sku string) bool { return names(argument, sku) }) {
				return t
			}
		}
	}
	return nil
}

// names reports whether an argument is about the lock of a SKU.
func names(argument, sku string) bool {
	_, after, found := strings.Cut(argument, "sku:"+sku)
	return found && (after == "" || after[0] == '}')
}
