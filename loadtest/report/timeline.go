package report

// Timeline is what some requests of a race did, by the shop's own account,
// ordered by the moment at which each read the stock.
type Timeline struct {
	Requests []Request `json:"requests"`

	// Pair is empty, or the indexes of two requests that read the same stock and
	// both wrote back what they reckoned from it: the first two that did so.
	Pair []int `json:"pair,omitempty"`
}

// Request is one request. Its times are in microseconds since the earliest of its
// Timeline; of steps that it did not take, they are 0.
type Request struct {
	Buyer    string `json:"buyer"`
	Accepted bool   `json:"accepted"`
	Seen     int64  `json:"seen"`            // the units that it read
	Wrote    *int64 `json:"wrote,omitempty"` // what it wrote back; absent where the database subtracts

	Begun     int64 `json:"begun_us"`
	LockAsked int64 `json:"lock_asked_us,omitempty"`
	LockHeld  int64 `json:"lock_held_us,omitempty"`
	Read      int64 `json:"read_us"`
	Writing   int64 `json:"writing_us,omitempty"` // its transaction begins
	Written   int64 `json:"written_us,omitempty"`
	Committed int64 `json:"committed_us,omitempty"`
	Released  int64 `json:"released_us,omitempty"`
}
