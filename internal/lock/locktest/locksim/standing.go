package locksim

import (
	"slices"
	"time"

	"example.com/shop/internal/lock"
)

// standing is the server's line for one key.
type standing struct {
	waiting []place
	expires time.Duration
}

type place struct {
	owner string
	at    int64
}

// stand puts the owner in line, where it is not yet.
func (s *server) stand(c lock.Claim, until time.Duration) {
	l := s.lines[c.Key]
	if l == nil {
		l = &standing{}
		s.lines[c.Key] = l
	}
	l.expires = until
	if slices.ContainsFunc(l.waiting, func(p place) bool { return p.owner == c.Owner }) {
		return
	}
	p := place{c.Owner, s.clocks.mint()}
	i, _ := slices.BinarySearchFunc(l.waiting, p, func(q, p place) int {
		if q.at <= p.at {
			return -1
		}
		return 1
	})
	l.waiting = slices.Insert(l.waiting, i, p)
}

func (s *server) leave(c lock.Claim) {
	if l := s.lines[c.Key]; l != nil {
		l.waiting = slices.DeleteFunc(l.waiting, func(p place) bool { return p.owner == c.Owner })
	}
}
