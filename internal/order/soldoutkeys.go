package order

import (
	"context"
	"hash/maphash"
	"slices"
	"time"
)

// keySet are hashes of idempotency keys, sorted. A key that has the hash of
// another one by chance goes the long way, where it is told apart.
type keySet []uint64

func (k keySet) has(hash uint64) bool {
	_, found := slices.BinarySearch(k, hash)
	return found
}

// hash is another one in each process, so that nobody can choose keys that meet.
func (s *soldOut) hash(key BuyerKey) uint64 { return maphash.Comparable(s.seed, key) }

// learnBound ends the reading of keys: who has come to the lane meanwhile waits
// for it.
const learnBound = time.Second

// learn keeps what a leader has seen of a SKU that has nothing left. It is called
// after the answers and without the lease, by one in this instance at a time.
func (s *Service) learn(l *look) {
	keys, wanted := s.soldOut.wanted(l)
	if !wanted {
		return
	}
	if keys == nil {
		ctx, cancel := context.WithTimeout(s.lanes.ctx, learnBound)
		defer cancel()
		keys = keySet{}
		err := s.store.KeysOf(ctx, l.seen.Name, soldOutKeys+1, func(key BuyerKey) {
			keys = append(keys, s.soldOut.hash(key))
		})
		if err != nil || len(keys) > soldOutKeys {
			s.soldOut.giveUp(l)
			return
		}
		slices.Sort(keys)
	}
	s.soldOut.learn(l, keys)
}

// refuseKnown tells those who stand in a lane, and are known to come in vain, and
// reports whether there were any.
func (s *Service) refuseKnown(at laneKey, how Strategy) bool {
	if !how.Remembers || !s.soldOut.knows(at.sku) {
		return false
	}
	known := s.lanes.takeIf(at, func(w *wish) bool {
		_, ok := s.soldOut.refuses(w.request)
		return ok
	})
	refuse(known, errSoldOut(at.sku))
	_ = s.guard(at.sku, func() error { // whatever comes of it, they are told
		for range known {
			s.countRefused()
		}
		return nil
	})
	return len(known) > 0
}

// knownSoldOut refuses r if one of its SKUs is known to be sold out. Its lines are
// merged.
func (s *Service) knownSoldOut(r Request) error {
	sku, ok := s.soldOut.refuses(r)
	if !ok {
		return nil
	}
	s.countRefused()
	return errSoldOut(sku)
}

func (s *Service) countRefused() {
	if s.onRefused != nil {
		s.onRefused()
	}
}

// SoldOut reports whether Place would refuse r by what this instance remembers,
// without asking anybody. For a request that is not valid it is false.
func (s *Service) SoldOut(r Request) bool {
	if _, ok := s.soldOut.refuses(r); !ok {
		return false
	}
	how, err := find(s.strategies, r.Strategy)
	return err == nil && how.Remembers && s.Missing(how.Name) == "" && r.Validate() == nil
}

// Restocked is called after units of these SKUs came back, by whoever gave them
// back or may have: they can be bought here at once, and elsewhere when Config.Announce
// has told.
func (s *Service) Restocked(skus ...string) {
	if s.soldOut.keep == 0 {
		return
	}
	s.soldOut.forget(skus...)
	if s.announce != nil {
		s.announce(skus...)
	}
}

// Heard is called when another instance tells that units of these SKUs came back.
func (s *Service) Heard(skus ...string) { s.soldOut.forget(skus...) }

// Hears says whether Heard is called from now on, of whatever is told. Nothing is
// remembered before the first time, and while it is not.
func (s *Service) Hears(on bool) { s.soldOut.hear(on) }
