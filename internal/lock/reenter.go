package lock

import "context"

// WithOwner returns a context that carries an owner's id, such as that of a
// request. A Locker gives a key that is held under an id to whoever asks for it
// under the same id again, as it does under Lease.Context. These leases end with
// their own Release or when the key is lost; no caller's context ends another's.
// Ids mean something to one Locker only, not to the store.
func WithOwner(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, ownerKey{}, id)
}

type ownerKey struct{}

func ownerOf(ctx context.Context) string {
	id, _ := ctx.Value(ownerKey{}).(string)
	return id
}

// leaseContext is a lease's context. It knows its lease, and those of other keys
// under which the lease was taken.
type leaseContext struct {
	context.Context
	lease *Lease
}

// leaseKey asks a context for the latest lease of one Locker, on this key.
type leaseKey struct {
	locker *Locker
	key    string
}

// Value implements context.Context.
func (c *leaseContext) Value(k any) any {
	if k, ok := k.(leaseKey); ok && k.locker == c.lease.holding.locker && k.key == c.lease.Key() {
		return c.lease
	}
	return c.Context.Value(k)
}

// bind makes the lease's context, a child of ctx.
func (e *Lease) bind(ctx context.Context) {
	ctx, e.cancel = context.WithCancelCause(ctx)
	e.ctx = leaseContext{ctx, e}
}

// again returns one more lease on a key that the caller holds already, or nil.
// The caller holds Locker.mu.
func (l *Locker) again(ctx context.Context, key string) *Lease {
	q := l.lines[key]
	if q == nil || q.held == nil {
		return nil
	}
	root := q.held.lease
	outer, _ := ctx.Value(leaseKey{l, key}).(*Lease)
	id := ownerOf(ctx)
	if (outer == nil || outer.root != root) && (id == "" || id != root.owner) {
		return nil
	}
	e := &Lease{holding: q.held, root: root}
	e.bind(ctx)
	if root.again == nil {
		root.again = make(map[*Lease]struct{})
	}
	root.again[e] = struct{}{}
	return e
}
