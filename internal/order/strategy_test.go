package order

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/stock"
)

// "Never oversold, by every strategy that Promises it, however many instances
// there are and whatever becomes of the lock: the statement that takes the
// units compares and subtracts in one step."
func TestStrategies(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range Strategies() {
		if names[s.Name] || s.Name == "" || strings.ToLower(s.Name) != s.Name {
			t.Errorf("%q: want a name of its own, in small letters", s.Name)
		}
		names[s.Name] = true
		known := []string{NoLock, MemoryLock, RedisLock, RedlockLock, MySQLLock, ZooKeeperLock}
		if !slices.Contains(known, s.Lock) && (s.Promises || s.Lock != s.Name) {
			t.Errorf("%s: unknown lock %q", s.Name, s.Lock)
		}
		if s.Promises == (s.Take == stock.Overwrite) {
			t.Errorf("%s: takes units by %s, and promises: %v", s.Name, s.Take, s.Promises)
		}
		if s.Take == stock.Fenced && !slices.Contains([]string{RedisLock, MySQLLock, ZooKeeperLock}, s.Lock) {
			t.Errorf("%s: a fence needs a lock that all instances share and that mints one", s.Name)
		}
		if s.Lane && s.Take != stock.Fenced {
			t.Errorf("%s: a lane sells at terms of a moment ago, which only a fenced take compares", s.Name)
		}
		if s.ReleaseEarly && s.Promises {
			t.Errorf("%s: gives its lock back before the commit, and promises", s.Name)
		}
		if (s.Take == stock.Overwrite || s.Take == stock.Optimistic) && !s.ReadFirst {
			t.Errorf("%s: writes back what it has not read", s.Name)
		}
		if !strings.HasSuffix(s.Lesson, ".") {
			t.Errorf("%s: the lesson %q is no sentence", s.Name, s.Lesson)
		}
	}
}

func TestStrategy(t *testing.T) {
	t.Parallel()
	byDefault, err := find(Strategies(), "")
	if err != nil || !byDefault.Promises {
		t.Errorf("default: got %+v, %v, want one that promises", byDefault, err)
	}
	for _, want := range Strategies() {
		if got, err := find(Strategies(), want.Name); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", want.Name, got, err, want)
		}
	}
	for _, name := range []string{"Redis", "redis ", "nobody", strings.Repeat("x", 1000)} {
		_, err := find(Strategies(), name)
		if !errors.Is(err, ErrUnknownStrategy) || len(err.Error()) > 400 {
			t.Errorf("%.20q: got %v, want a short ErrUnknownStrategy", name, err)
		}
	}
}
