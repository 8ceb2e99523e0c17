package order

import (
	"fmt"
	"runtime/debug"
)

// A leader serves many buyers, none of whom may be left without an answer, or
// without a leader, because something panicked on behalf of one of them. Each is
// told that it is unknown what became of the order, as a buyer whose own request
// panics is; the same request again tells.

// guard runs f and returns a panic of it as an error, of which onPanic is told
// with the stack.
func (s *Service) guard(sku string, f func() error) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		err = fmt.Errorf("lane of sku %q: panic: %v", sku, p)
		if s.onPanic != nil {
			s.onPanic(fmt.Errorf("%w\n%s", err, debug.Stack()))
		}
	}()
	return f()
}

// refuseRest tells err to those of the wishes that have no answer yet.
func refuseRest(wishes []*wish, err error) {
	for _, w := range wishes {
		if !w.told {
			w.tell(outcome{err: err})
		}
	}
}
