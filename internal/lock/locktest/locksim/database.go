package locksim

import "sync"

// database is what the lock guards. It takes a write only with a higher fence
// than before:
//
//	UPDATE stock SET ..., fence = ? WHERE sku = ? AND fence < ?
type database struct {
	world *world

	mu   sync.Mutex
	rows map[string]*row
}

type row struct {
	fence int64
	by    *lease
}

// write reports whether the write was taken, and the fence seen before.
func (d *database) write(e *lease, fence int64) (ok bool, seen int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rows[e.key]
	if r == nil {
		r = &row{}
		d.rows[e.key] = r
	}
	if fence <= r.fence {
		return false, r.fence
	}
	// "no accepted write comes from a lease older than one accepted before"
	if r.by != nil && e.before(r.by) && !d.world.excused(e, r.by) {
		d.world.broke(e.who, "a write with fence %d of an older lease was taken after that of %s with %d",
			d.world.fence(fence), r.by.who, d.world.fence(r.fence))
	}
	seen, r.fence, r.by = r.fence, fence, e
	return true, seen
}
