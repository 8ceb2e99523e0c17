package lock

import "time"

// handOver gives the lease to the next waiter of this process, without asking
// the store, and reports whether it did. It stops after Options.MaxHandoffs in a
// row and Options.HandoffTime, so that other processes get their turn, and where
// too little of the lease is left for the next one. The caller holds Locker.mu.
//
// The next fence is one more than the last. The store mints from a clock in
// microseconds, and so must not be overtaken: fewer hand-offs than microseconds
// have passed since the grant.
func (h *holding) handOver() bool {
	now, o := time.Now(), h.locker.opt
	held := now.Sub(h.granted)
	if h.handoffs >= o.MaxHandoffs || held > o.HandoffTime ||
		h.deadline.Sub(now) < (o.TTL-o.Margin)/2 ||
		int64(h.handoffs) >= held.Microseconds() {
		return false
	}
	w := h.line.next()
	if w == nil {
		return false
	}
	h.handoffs++
	if h.fence != 0 {
		h.fence++
	}
	w.turn <- turn{lease: h.admit(w.ctx)}
	return true
}
