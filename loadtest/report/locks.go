package report

import "fmt"

// Locks are how requests waited for the strategy's lock, held it and handed it
// over, by the shop's own account.
type Locks struct {
	Requests int64     `json:"requests"` // that had a lock and told of it
	WaitMS   LatencyMS `json:"wait_ms"`
	HoldMS   LatencyMS `json:"hold_ms"`

	// Hand-overs are of the most wanted SKU: from the end of one holder's work until
	// the next one, who was waiting, had the lock.
	HandOvers  int64     `json:"hand_overs"`
	HandOverMS LatencyMS `json:"hand_over_ms"`

	// Overlaps is how many had that lock before the holder before them had committed.
	Overlaps int64 `json:"overlaps"`
}

// Says is a sentence or two for people.
func (l Locks) Says() string {
	said := fmt.Sprintf("The lock: half of the requests waited %s for it and 99 of 100 at most %s; they held it for %s and %s.",
		ShowWait(l.WaitMS.P50), ShowWait(l.WaitMS.P99), ShowWait(l.HoldMS.P50), ShowWait(l.HoldMS.P99))
	if l.HandOvers > 0 {
		said += fmt.Sprintf(" From a commit until the next in line had it: %s and %s.", ShowWait(l.HandOverMS.P50), ShowWait(l.HandOverMS.P99))
	}
	if l.Overlaps > 0 {
		said += fmt.Sprintf(" %s before the holder before had committed, which is what a lock is there to prevent.", count(l.Overlaps, "request had it", "requests had it"))
	}
	return said
}
