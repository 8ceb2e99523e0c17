package locktest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"example.com/shop/internal/lock"
)

// quitterLeavesLine: "If the owner does not hold the key, it leaves the line",
// which Release has done when it returns. No later release calls one who has
// left, in place of one who stays: that one is told at once, where a lost call
// would take the TTL, longer than the test.
func quitterLeavesLine(t *testing.T, h Harness) {
	need(t, h.Notifies, "Notifies")
	for name, line := range map[string]string{ // s stays, q quits, Q quits when it is called
		"in front":            "qs",
		"behind":              "sq",
		"in front and behind": "qsq",
		"two in front":        "qqs",
		"in its turn":         "Qs",
		"two in their turns":  "QQs",
	} {
		for whose, connect := range map[string]func() lock.Backend{
			"several processes": func() lock.Backend { return h.backend(t) },
			"one process":       same(h.backend(t)),
		} {
			t.Run(name+", "+whose, func(t *testing.T) {
				if strings.Contains(line, "Q") {
					need(t, h.FirstInFirstOut, "FirstInFirstOut")
				}
				k := key(t)
				holder := standing{connect(), lock.Claim{Key: k, Owner: "holder", TTL: long}}
				holder.has(t)
				var all []standing
				for i := range line {
					s := standing{connect(), lock.Claim{Key: k, Owner: fmt.Sprint("waiter", i), TTL: long, Queue: true}}
					s.waits(t)
					all = append(all, s)
				}
				for i, s := range all {
					if line[i] == 'q' {
						s.quits(t)
					}
				}
				holder.frees(t)
				for i, s := range all {
					switch line[i] {
					case 'Q':
						s.isTold(t)
						s.quits(t)
					case 's':
						s.isTold(t)
						s.has(t)
						s.frees(t)
					}
				}
				holder.has(t)
				holder.frees(t)
			})
		}
	}
}

// same returns one backend again and again.
func same(b lock.Backend) func() lock.Backend { return func() lock.Backend { return b } }

// standing is an owner and its place in a store.
type standing struct {
	lock.Backend
	claim lock.Claim
}

func (s standing) has(t *testing.T) {
	t.Helper()
	if g, err := s.Acquire(bounded(t), s.claim); err != nil || g.Held {
		t.Fatalf("Acquire by %s: %+v, %v; want the key", s.claim.Owner, g, err)
	}
}

func (s standing) waits(t *testing.T) {
	t.Helper()
	if g, err := s.Acquire(bounded(t), s.claim); err != nil || !g.Held {
		t.Fatalf("Acquire by %s: %+v, %v; want held by another", s.claim.Owner, g, err)
	}
}

// isTold fails the test if the owner is not called.
func (s standing) isTold(t *testing.T) {
	t.Helper()
	if err := s.Wait(bounded(t), s.claim, lock.Grant{Held: true, Retry: long}); err != nil {
		t.Fatalf("Wait by %s: %v", s.claim.Owner, err)
	}
}

// quits leaves the line. Where that passes on a key that was kept for the owner,
// the store may take it for a release.
func (s standing) quits(t *testing.T) {
	t.Helper()
	if err := s.Release(bounded(t), s.claim); err != nil && !errors.Is(err, lock.ErrLost) {
		t.Fatalf("Release by %s, which waits: %v, want nil or ErrLost", s.claim.Owner, err)
	}
}

func (s standing) frees(t *testing.T) {
	t.Helper()
	if err := s.Release(bounded(t), s.claim); err != nil {
		t.Fatalf("Release by %s: %v", s.claim.Owner, err)
	}
}
