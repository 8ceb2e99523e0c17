package locksim

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Result is what a run of a plan led to.
type Result struct {
	Plan   *Plan
	Broken []string // rules, with the virtual times in the Log
	Log    []string // one line for each event
	Leases int      // how many were had
}

// Run runs the plan in virtual time. What it finds is in the Result; t does not
// fail by it.
func Run(t *testing.T, p *Plan) (r Result) {
	t.Helper()
	var w *world
	defer func() {
		// A deadlock of the bubble: somebody waits for what never comes.
		if v := recover(); v != nil {
			w.stuck(v)
		}
		r = Result{Plan: p, Broken: w.broken, Log: w.lines(), Leases: len(w.leases)}
	}()
	synctest.Test(t, func(*testing.T) {
		w = newWorld(p)
		w.run()
	})
	return r
}

// String is what a failure prints.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", r.Plan, strings.Join(r.Log, "\n"))
	for _, broken := range r.Broken {
		fmt.Fprintf(&b, "BROKEN %s\n", broken)
	}
	return b.String()
}

// run is the life of a world. Whatever goroutine outlives it is a deadlock of
// the bubble, whose time stops when run returns.
func (w *world) run() {
	w.unleash()
	var workers sync.WaitGroup
	for i, l := range w.links {
		for n := range l.workers {
			k := &worker{world: w, link: l, locker: w.lockers[i], name: fmt.Sprintf("%s/w%d", l.name, n+1)}
			workers.Go(k.work)
		}
	}
	if !w.ends("the workers", workers.Wait, w.plan.storm+w.patience()+10*w.plan.longest) {
		return
	}
	w.ends("Close", func() {
		var closing sync.WaitGroup
		for i := range w.lockers {
			closing.Go(func() { w.close(i) })
		}
		closing.Wait()
	}, 20*w.plan.longest+time.Minute)
	w.ends("messages", w.messages.Wait, 20*w.plan.longest)
	w.checkLeft()
	w.checkHistory()
}

// ends reports whether wait returns in time.
func (w *world) ends(what string, wait func(), most time.Duration) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		w.broke("all", "%s have not ended after %v", what, most)
		return false
	}
}
