package step

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/lab"
	"example.com/shop/loadtest/shopclient"
)

// plan says what is played: the acts as far as they go, then each buyer to its end.
type plan struct {
	Bounds
	acts  []act
	part  bool // end with the acts
	loose bool // leave out acts that are not possible
	each  bool // keep the position before each decision, too
}

// walk is one schedule while it is played: each buyer's request stands still before its next step, and one at a time
// takes it.
type walk struct {
	plan
	shops    *instances
	strategy shopclient.Strategy
	sku      string
	log      *journal
	buyers   []*buyer

	kept       []Position // before each decision, where the plan wants them
	last       int        // buyer that made the latest step; -1 before the first
	changes    int        // releases and expiries so far: a buyer who polls asks again only after one
	timePassed bool       // so that the locks of dead buyers have run out
	done       []decision // in order
	cost       int        // of all decisions
}

// decision is an act, and what could have been done instead.
type decision struct {
	act
	of      int // index of the plan's act that it belongs to; behind the last for what comes after them
	instead []act
	at      time.Duration // since the play began
	line    string        // of the source, where its buyer stood
	blocked bool          // the buyer could not go on after it
}

// walkThrough plays a schedule. The last position is the end; the decisions are what was done, with
// what could have been done instead.
func walkThrough(ctx context.Context, on *instances, by shopclient.Strategy, p plan) (all []Position, done []decision, err error) {
	suffix := "-" + strings.ToLower(rand.Text()[:8])
	w := &walk{
		plan: p, shops: on, strategy: by, sku: "mug" + suffix, log: &journal{began: time.Now(), suffix: suffix}, last: -1,
	}
	defer w.end(ctx)
	if err := w.begin(ctx); err != nil {
		return nil, nil, err
	}
	if err := w.playActs(ctx); err != nil {
		return nil, nil, err
	}
	for {
		over, err := w.isStuck(ctx)
		if err != nil {
			return nil, nil, err
		}
		if over || p.part {
			now, err := w.position(ctx, over)
			return append(w.kept, now), w.done, err
		}
		if err := w.do(ctx, w.choices()); err != nil {
			return nil, nil, err
		}
	}
}

// begin puts units up for sale and lets all buyers ask for them, up to their first step.
func (w *walk) begin(ctx context.Context) error {
	if err := w.shops.clients[0].Create(ctx, w.sku, w.Units); err != nil {
		return err
	}
	for i := range w.Buyers {
		name := buyerNames[i : i+1]
		alive, giveUp := context.WithCancel(ctx)
		b := &buyer{
			name: name, shop: w.shops.clients[i], log: w.log, giveUp: giveUp,
			once:     w.strategy.Name == lab.Serializable, // or schedules would differ by whom the database has ended
			answered: make(chan struct{}), recordings: map[int]lab.Recording{},
			purchase: shopclient.Purchase{
				Buyer: "buyer-" + strings.ToLower(name) + w.log.suffix, Key: w.sku + "-" + strings.ToLower(name),
				Lines: []shopclient.Line{{SKU: w.sku, Units: 1}}, Strategy: w.strategy.Name,
			},
		}
		w.buyers = append(w.buyers, b)
		go b.run(alive)
		if err := w.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end stops all that the walk has started.
func (w *walk) end(ctx context.Context) {
	for _, b := range w.buyers {
		b.gone.Store(true)
		if !b.finished() { // it may also have stopped in what it does without its own context
			_ = b.move(context.WithoutCancel(ctx), lab.Resume)
		}
		b.giveUp()
	}
	for _, b := range w.buyers {
		<-b.answered
	}
}

// playActs does what the plan names. A step waits for time to pass where no buyer can go on without.
func (w *walk) playActs(ctx context.Context) error {
	for i, a := range w.acts {
		for a.kind == steps || a.kind == runs {
			if _, err := w.isStuck(ctx); err != nil {
				return err
			}
			if a.kind == steps || !w.canGoOn(a.buyer) {
				break
			}
			if err := w.do(ctx, decision{act: act{steps, a.buyer}, of: i}); err != nil {
				return err
			}
		}
		if a.kind == runs || w.loose && !w.possible(a) {
			continue
		}
		if err := w.do(ctx, decision{act: a, of: i}); err != nil && (!w.loose || !errors.Is(err, errNoLock)) {
			return err
		}
	}
	return nil
}

// isStuck reports whether no buyer can go on, also after the locks of dead buyers have run out.
func (w *walk) isStuck(ctx context.Context) (bool, error) {
	for len(w.possibleActs(steps)) == 0 {
		i := slices.IndexFunc(w.buyers, func(b *buyer) bool { return !b.finished() && b.at.asks })
		died := slices.ContainsFunc(w.buyers, func(b *buyer) bool { return b.dead })
		if i < 0 || !died || !w.endsByTime() || w.timePassed && w.lockIsFree(w.buyers[i]) {
			return true, nil
		}
		w.timePassed = true
		if err := w.expire(ctx, w.buyers[i]); errors.Is(err, errNoLock) {
			return true, nil
		} else if err != nil {
			return true, err
		}
	}
	return false, nil
}

// choices returns what is done next, where a buyer can go on, and what can be done instead within the bound. Only a
// buyer whose turn it is meets with a fault.
func (w *walk) choices() decision {
	others := w.possibleActs(steps)
	d := decision{act: others[max(0, slices.Index(others, act{steps, w.last}))], of: len(w.acts)}
	if slices.ContainsFunc(w.buyers, func(b *buyer) bool { return b.at.chosen }) {
		return d // which of two the database ends is its choice: what comes next cannot be named
	}
	if w.Crash && !slices.ContainsFunc(w.done, func(d decision) bool { return d.kind != steps }) {
		for _, a := range w.possibleActs(dies, expires) {
			if a.buyer == w.last || !w.canGoOn(w.last) {
				others = append(others, a)
			}
		}
	}
	for _, a := range others {
		if a != d.act && w.cost+w.price(a) <= w.Preemptions {
			d.instead = append(d.instead, a)
		}
	}
	return d
}

// possibleActs returns the acts of some kinds that can be done. Buyers are alike until they have begun:
// of those, the first is next.
func (w *walk) possibleActs(kinds ...byte) (all []act) {
	for _, kind := range kinds {
		begins := false
		for i, b := range w.buyers {
			if a := (act{kind, i}); w.possible(a) && (b.begun || kind == steps && !begins) {
				all = append(all, a)
			}
			begins = begins || !b.begun && !b.finished()
		}
	}
	return all
}

// price is what an act adds to the cost of a schedule. To switch is free where the buyer cannot go on, or has just lost
// its lock while it stood still.
func (w *walk) price(a act) int {
	if a.kind == steps && (w.last < 0 || a.buyer == w.last || !w.canGoOn(w.last) || w.done[len(w.done)-1].kind == expires) {
		return 0
	}
	return 1
}

func (w *walk) possible(a act) bool {
	b := w.buyers[a.buyer]
	switch a.kind {
	case steps:
		return w.canGoOn(a.buyer)
	case dies, works:
		return !b.finished() && b.at.next != ""
	}
	if w.strategy.Lock == lab.HoldLock && slices.ContainsFunc(w.buyers, func(b *buyer) bool { return b.at.inTx }) {
		return false // the row of the order may be locked, or the file
	}
	return !b.dead && b.at.holds && !b.expired && (w.endsByTime() || w.strategy.LockEnds == lab.EndsNever)
}

// canGoOn reports whether the buyer's next step would not be waiting. A buyer who polls for a lock, and was refused
// last, waits for a change. Those who wait for a correct lock get it by themselves.
func (w *walk) canGoOn(i int) bool {
	b := w.buyers[i]
	inVain := b.at.waits && !w.renews() && b.asked == w.changes
	return !b.finished() && b.at.next != "" && !inVain && !w.mustWait(b)
}

func (w *walk) name() string { return scheduleName(w.strategy.Name, w.Units, w.done) }

// do makes an act and waits until all requests stand still again. ErrSchedule: the act is not possible now.
func (w *walk) do(ctx context.Context, d decision) error {
	b := w.buyers[d.buyer]
	next := b.at.next
	switch {
	case !w.possible(d.act):
		return fmt.Errorf("%w: %s cannot do that after %s", ErrSchedule, b.name, w.name())
	case len(w.done) == maxActs:
		return fmt.Errorf("%s: more than %d steps: a request does not end", w.name(), maxActs)
	}
	if w.each {
		before, err := w.position(ctx, false)
		if err != nil {
			return err
		}
		w.kept = append(w.kept, before)
	}
	w.cost, d.at, d.line = w.cost+w.price(d.act), time.Since(w.log.began), b.line
	if b.at.asksNow || strings.Contains(next, " take-or-wait ") {
		b.asked = w.changes
	}
	var err error
	switch d.kind {
	case steps:
		b.at.next, b.at.waits, b.begun, w.last = "", false, true, d.buyer
		err = b.move(ctx, lab.Step)
	case dies: // the request does, as if its process had
		b.dead = true
		b.gone.Store(true)
		err = b.move(ctx, lab.Die)
	case expires:
		err = w.expire(ctx, b)
	case works:
		w.log.add(b.name, Schedule, "works for longer than a lock lives")
		shopclient.Pause(ctx, w.shops.ttl*3/2)
		if w.strategy.LockEnds == lab.EndsByTTL {
			w.expireAll()
		}
	}
	if err == nil {
		err = w.settle(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s, then %s: %w", w.name(), d.act, err)
	}
	if d.kind == steps && frees.MatchString(next) {
		w.changes++
	}
	d.blocked = !w.canGoOn(d.buyer)
	w.done = append(w.done, d)
	return nil
}

// frees matches commands that may let in a buyer who polls for a lock.
var frees = regexp.MustCompile(`^(redis (DEL|EVAL (?:compare-and-delete|count-units|settle-units)|HINCRBY)|sql DELETE FROM wrong_locks) `)

// errNoLock is an ErrSchedule: another buyer has deleted the lock that was to run out, or has its own there.
var errNoLock = fmt.Errorf("%w: there is no lock that could run out", ErrSchedule)

// expire makes the lock that the buyer asked for run out, or returns errNoLock.
func (w *walk) expire(ctx context.Context, b *buyer) error {
	try := b.try()
	before := len(b.recordings[try].Events)
	if err := b.move(ctx, lab.Expire); err != nil {
		return err
	}
	if !slices.ContainsFunc(b.recordings[try].Events[before:], func(e lab.Event) bool { return e.Kind == lab.KindStop }) {
		return errNoLock
	}
	w.expireAll()
	return w.settle(ctx)
}

func (w *walk) expireAll() {
	for _, b := range w.buyers {
		b.expired = b.expired || b.at.holds
	}
	w.changes++
}

const settleBound = 30 * time.Second // for a step

// settle waits until each request stands still: it has stopped before a step, has ended, or waits for another.
func (w *walk) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleBound, fmt.Errorf("a step took longer than %v", settleBound))
	defer cancel()
	for {
		i := slices.IndexFunc(w.buyers, func(b *buyer) bool { return !w.settled(b) })
		if i < 0 {
			return nil
		}
		for j, b := range w.buyers {
			if j == i || b.at.waits && w.renews() { // which of the waiting buyers gets the lock?
				w.look(ctx, b)
			}
		}
		switch b := w.buyers[i]; {
		case w.settled(b):
		case ctx.Err() != nil:
			return fmt.Errorf("%s after %q: %w", b.name, b.at.sending, context.Cause(ctx))
		case b.at.waits || !b.awaitChange(ctx):
			select {
			case <-b.answered:
			case <-time.After(time.Millisecond):
			}
		}
	}
}

// look learns how far a buyer has come. What it has taken from a count, and what its order holds, is
// its own until the answer.
func (w *walk) look(ctx context.Context, b *buyer) {
	b.look(ctx, !w.renews())
	if w.strategy.LockEnds == lab.EndsWithAnswer {
		b.at.holds = b.at.holds && !b.at.answered
	}
	b.expired = b.expired && b.at.holds
}

func (w *walk) settled(b *buyer) bool {
	if b.dead {
		return !b.at.inTx // the database has seen that the connection is gone
	}
	waits := b.at.waits && w.renews() && !w.lockIsFree(b)
	return b.finished() || b.at.next != "" || waits || w.mustWait(b)
}

// lockIsFree reports whether a buyer who waits for a correct lock gets it.
func (w *walk) lockIsFree(b *buyer) bool {
	return w.strategy.LockEnds == lab.EndsWithProcess || !slices.ContainsFunc(w.buyers, func(other *buyer) bool {
		return other.at.holds && (!other.expired || other == b) // one process notices the end late
	})
}

// mustWait reports whether the buyer waits for another's transaction or named lock. Two that wait for
// each other do not: the database ends one of them.
func (w *walk) mustWait(b *buyer) bool {
	return slices.ContainsFunc(w.buyers, func(other *buyer) bool {
		return other != b && w.waitsFor(b, other) && !w.waitsFor(other, b)
	})
}

// waitsFor reports whether what the buyer sends waits for another: for a row that it has locked or, in SQLite, for the
// end of its transaction. There, a request does not send its BEGIN before: which of several that wait would get in?
func (w *walk) waitsFor(b, other *buyer) bool {
	sends, has := b.at.sending, other.at
	switch {
	case other.dead:
		return false
	case w.shops.oneWriter:
		return b.at.next == "sql BEGIN" && has.inTx
	case strings.HasPrefix(sends, "SELECT GET_LOCK("):
		return has.holds
	case strings.HasPrefix(sends, "UPDATE orders "):
		return has.ends
	case b.at.next == "sql BEGIN" && has.ends: // it would begin again and again, until the order's row is free
		return true
	case w.strategy.Name == lab.Serializable && b.at.readsInTx: // where the other could write, the database is ending this one
		return locksRow(sends) && has.readsInTx && !has.wrote
	case w.strategy.Name == lab.Serializable:
		return readsRow(sends) && has.wrote
	}
	return locksRow(sends) && has.wrote
}

// endsByTime reports whether waiters live to see the strategy's lock run out.
func (w *walk) endsByTime() bool {
	return slices.Contains([]string{lab.EndsAsLease, lab.EndsByTTL, lab.EndsWithAnswer}, w.strategy.LockEnds)
}

// renews reports whether the strategy's lock stays for as long as its holder works.
func (w *walk) renews() bool {
	return w.strategy.LockEnds == lab.EndsAsLease || w.strategy.LockEnds == lab.EndsWithProcess
}

// position returns the outcome of the walk so far.
func (w *walk) position(ctx context.Context, over bool) (Position, error) {
	p := Position{
		Schedule: w.name(), Acts: []string{}, Strategy: w.strategy.Name,
		Designed: w.strategy.Designed, LockName: w.strategy.Lock, Units: w.Units, Next: []string{}, Wrong: -1, Saved: -1, Over: over,
	}
	for _, d := range w.done {
		p.Acts = append(p.Acts, d.String())
	}
	stuck, wanted := false, false
	for i, b := range w.buyers {
		is := Buyer{
			Name: b.name, Instance: i + 1, State: Waits, Next: strings.ReplaceAll(b.at.next, w.log.suffix, ""), Line: b.line,
			Holds: b.at.holds && !b.dead, Read: b.at.read,
		}
		switch {
		case b.dead:
			is.State, is.Next, is.Line = Died, "", ""
		case b.finished():
			is.State, is.Line, is.Answer = Done, "", answerText(b.answer, b.err)
		case w.canGoOn(i):
			is.State = Ready
		}
		stuck = stuck || over && is.State == Waits
		wanted = wanted || is.State == Done && b.answer.Order.ID == "" && (!b.once || !b.answer.Problem.RetrySafe)
		p.Buyers, p.Lines = append(p.Buyers, is), append(p.Lines, b.lines...)
	}
	if !over {
		for _, a := range w.possibleActs(steps, dies, expires) {
			p.Next = append(p.Next, a.String())
		}
	}
	if err := w.readBooks(ctx, &p); err != nil {
		return p, err
	}
	w.readEvents(&p)
	if p.Sold > p.Units {
		p.Wrong = firstOversold(p.Events, p.Units)
	}
	if over {
		p.judge(stuck, wanted)
	}
	return p, nil
}

// readBooks asks a shop for the units sold, the units left, and the lock. The shop can answer: if a
// buyer has died, only its request has died.
func (w *walk) readBooks(ctx context.Context, p *Position) error {
	err := untilAvailable(ctx, func() error {
		audit, err := w.shops.clients[0].Audit(ctx, w.sku)
		p.Stock.Available, p.Stock.Reserved, p.Sold = audit.Books.Available, audit.Books.Reserved, audit.Books.OrderedUnits
		return err
	})
	if w.strategy.LockEnds == "" || w.strategy.LockEnds == lab.EndsWithProcess {
		return err
	}
	for _, b := range w.buyers {
		if state, unknown := b.shop.Lock(ctx, b.recordingName(b.try())); unknown == nil { // also where it has asked for none
			p.Lock = &Lock{Holders: []string{}, LockState: state}
		}
	}
	return err
}

// readEvents collects what was recorded, with the act that each event belongs to.
func (w *walk) readEvents(p *Position) {
	p.Events = w.log.with(w.buyers)
	fences := map[string]int64{} // by buyer, not committed yet
	for i := range p.Events {
		e := &p.Events[i]
		e.Noise = e.isNoise()
		e.Act = -1
		for i, d := range w.done {
			if d.at <= e.At {
				e.Act = i
			}
		}
		if e.Act >= 0 && w.buyers[w.done[e.Act].buyer].name == e.Actor {
			e.Line = w.done[e.Act].line
		}
		if fence := fenceRule.FindStringSubmatch(e.Text); fence != nil && e.Answer == "1 row" {
			fences[e.Actor], _ = strconv.ParseInt(fence[1], 10, 64) // digits
		}
		if e.Text == "COMMIT" && e.Answer == "OK" {
			p.Stock.Fence = max(p.Stock.Fence, fences[e.Actor])
		}
		if p.Lock != nil && p.Lock.isOwner(e.Text) && !slices.Contains(p.Lock.Holders, e.Actor) {
			p.Lock.Holders = append(p.Lock.Holders, e.Actor)
		}
	}
	for i, b := range w.buyers {
		p.Buyers[i].Mistaken = b.at.holds && !b.dead && (b.expired || p.Lock != nil && p.Lock.isOthers(b.name))
	}
}

var fenceRule = regexp.MustCompile(`^UPDATE skus SET .* fence = (\d+) `)
