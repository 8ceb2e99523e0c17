package locksim

import (
	"sync"
	"time"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/locktest/history"
)

// world is one run of a plan. It lives in a bubble of testing/synctest.
type world struct {
	*journal
	plan     *Plan
	server   *server
	links    []*link
	lockers  []*lock.Locker
	database *database
	history  history.History

	messages sync.WaitGroup // on their way, and faults to come

	mu     sync.Mutex
	owners map[string]*link
	leases []*lease
	shut   map[*link]time.Time // when its Locker was closed
	back   bool                // a clock has stepped back
}

func newWorld(p *Plan) *world {
	w := &world{
		journal: &journal{start: time.Now()},
		plan:    p,
		owners:  make(map[string]*link),
		shut:    make(map[*link]time.Time),
	}
	w.database = &database{world: w, rows: make(map[string]*row)}
	w.server = newServer(w.start, p.rate)
	w.server.rewound = w.rewound
	w.server.tell = func(owner string) bool { return w.linkOf(owner).hear(owner) }
	for _, q := range p.processes {
		l := &link{
			processPlan: q,
			world:       w,
			opt:         q.options,
			calls:       make(map[string]int),
			aliases:     make(map[string]string),
			told:        make(map[string]chan struct{}),
			leave:       make(map[string]func()),
		}
		if l.opt.Margin == 0 { // the documented default
			l.opt.Margin = l.opt.TTL / 10
		}
		l.watch = watch{link: l, owners: make(map[string]*ownerWatch), holdings: make(map[string][]*holding), last: make(map[string][]asked)}
		w.links = append(w.links, l)
		w.lockers = append(w.lockers, lock.New(l, q.options))
	}
	return w
}

// spawn runs fn in a goroutine that belongs to no process.
func (w *world) spawn(fn func()) { w.messages.Go(fn) }

// healed: the faults are over.
func (w *world) healed() bool { return time.Since(w.start) > w.plan.storm }

// introduce remembers whose an owner is.
func (w *world) introduce(owner string, l *link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owners[owner] = l
}

func (w *world) linkOf(owner string) *link {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.owners[owner]
}

// fence is short enough to read in the log.
func (w *world) fence(f int64) int64 {
	if f == 0 {
		return 0
	}
	return f - w.start.UnixMicro()
}

// lingering is the most that it takes a call to return when its context ends.
const lingering = 50 * time.Microsecond

// linger is how long a call that heeds its context takes to return.
func (w *world) linger(d dice) time.Duration {
	if w.plan.grain > time.Nanosecond {
		return 0 // at once: then the answer and the context's end race
	}
	return d.between(time.Microsecond, lingering)
}

// rewound is called by the server when a fence is lower than one before.
func (w *world) rewound() {
	w.mu.Lock()
	back := w.back
	w.mu.Unlock()
	w.note("store", "mints a lower fence than before")
	if !back {
		w.broke("store", "mints a lower fence, though no clock stepped back")
	}
	w.history.Rewound(time.Now())
}
