package buyers

import "sync/atomic"

// Tally counts while a race runs, for whoever watches. It may be read at any
// time.
type Tally struct {
	Connected, Ordered, Refused, Errors, Retries atomic.Int64
}

// Answered returns how many buyers are through.
func (t *Tally) Answered() int64 {
	return t.Ordered.Load() + t.Refused.Load() + t.Errors.Load()
}

func (t *Tally) add(r Record) {
	switch r.Outcome {
	case Ordered:
		t.Ordered.Add(1)
	case Refused:
		t.Refused.Add(1)
	case Failed, Unknown:
		t.Errors.Add(1)
	}
}
