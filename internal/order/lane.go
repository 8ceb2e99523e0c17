package order

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"example.com/shop/internal/lock"
)

// lanes are the lines of buyers of one instance, each of one SKU and one
// strategy. A lane is there while somebody stands in it or is being served; it
// has one leader, who goes with it.
type lanes struct {
	most int // buyers that may stand in one lane

	ctx     context.Context //nolint:containedctx // of all leaders, who serve many buyers: no buyer's own
	cancel  context.CancelCauseFunc
	leaders sync.WaitGroup

	mu      sync.Mutex
	open    map[laneKey]*lane
	waiting int // in all lanes
	closed  bool
}

// lane is one of them.
type lane struct {
	list.List               // of *wish, in the order of arrival
	joined    chan struct{} // has something in it when somebody has come
}

type laneKey struct{ strategy, sku string }

// wish is a buyer's request in a lane.
type wish struct {
	ctx     context.Context //nolint:containedctx // the buyer's, to be asked whether there still is one
	request Request         // of one line
	print   string
	answer  chan outcome  // has room for the one answer
	told    bool          // it has been given; of the leader
	place   *list.Element // nil when the wish stands in no lane; of lanes.mu
}

// outcome is what a wish is told.
type outcome struct {
	order    Order
	replayed bool
	err      error
	alone    bool // nothing was decided: the buyer goes on by itself
}

func (w *wish) key() BuyerKey { return BuyerKey{Buyer: w.request.Buyer, Key: w.request.Key} }

func (w *wish) line() RequestLine { return w.request.Lines[0] }

// tell gives a wish its answer, once.
func (w *wish) tell(o outcome) {
	w.told = true
	w.answer <- o
}

// refuse tells err to all wishes.
func refuse(wishes []*wish, err error) {
	for _, w := range wishes {
		w.tell(outcome{err: err})
	}
}

func newLanes(most int) *lanes {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &lanes{most: most, ctx: ctx, cancel: cancel, open: map[laneKey]*lane{}}
}

// join puts a wish at the end of its lane. The first one brings the leader.
func (l *lanes) join(at laneKey, w *wish, lead func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("lane of sku %q: %w: %w", at.sku, lock.ErrNotAcquired, lock.ErrClosed)
	}
	into, ok := l.open[at]
	if !ok {
		into = &lane{joined: make(chan struct{}, 1)}
		l.open[at] = into
		l.leaders.Go(lead)
	}
	if into.Len() >= l.most {
		return fmt.Errorf("lane of sku %q: %w: %w", at.sku, lock.ErrNotAcquired, lock.ErrQueueFull)
	}
	w.place = into.PushBack(w)
	l.waiting++
	select {
	case into.joined <- struct{}{}:
	default:
	}
	return nil
}

// came returns what receives something when somebody has joined a lane that is open.
func (l *lanes) came(at laneKey) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[at].joined
}

// front returns at most so many wishes from the head of a lane, and leaves them there.
func (l *lanes) front(at laneKey, most int) (wishes []*wish) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.open[at].Front(); e != nil && len(wishes) < most; e = e.Next() {
		wishes = append(wishes, e.Value.(*wish)) //nolint:forcetypeassert // as in head
	}
	return wishes
}

// leave takes a wish out of its lane and reports whether it was still there. If
// not, its answer is on the way.
func (l *lanes) leave(at laneKey, w *wish) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.place == nil {
		return false
	}
	l.remove(l.open[at], w)
	return true
}

// next takes at most so many wishes out of a lane, from its head.
func (l *lanes) next(at laneKey, most int) []*wish {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.open[at]
	wishes := make([]*wish, 0, min(most, from.Len()))
	for len(wishes) < most && from.Len() > 0 {
		w := from.Front().Value.(*wish) //nolint:forcetypeassert // as in head
		l.remove(from, w)
		wishes = append(wishes, w)
	}
	return wishes
}

// takeIf takes the wishes out of a lane for which is holds.
func (l *lanes) takeIf(at laneKey, is func(*wish) bool) (taken []*wish) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.open[at]
	for e := from.Front(); e != nil; {
		w := e.Value.(*wish) //nolint:forcetypeassert // as in head
		e = e.Next()
		if is(w) {
			l.remove(from, w)
			taken = append(taken, w)
		}
	}
	return taken
}

func (l *lanes) remove(from *lane, w *wish) {
	from.Remove(w.place)
	w.place = nil
	l.waiting--
}

// head returns who stands first in a lane. It closes the lane, and returns nil, if
// there is nobody; whoever comes later opens another.
func (l *lanes) head(at laneKey) *wish {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.open[at].Front(); first != nil {
		return first.Value.(*wish) //nolint:forcetypeassert // nothing else is put in
	}
	delete(l.open, at)
	return nil
}

func (l *lanes) queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// close turns away who stands in a lane or comes from now on, and returns when
// the last leader is done.
func (l *lanes) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel(lock.ErrClosed)
	l.leaders.Wait()
}
