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
	"sync"
	"time"

	"example.com/shop/loadtest/shopclient"
)

const settleBound = 30 * time.Second // for a step

var errNotSettled = fmt.Errorf("a step took longer than %v", settleBound)

// walk is one schedule while it is played: each buyer's request stands still before its next step, and one at a time
// takes it.
type walk struct {
	shops    *instances
	strategy shopclient.Strategy
	units    int64
	how      Arrangement
	skus     []string
	log      *journal
	buyers   []*walker
	running  sync.WaitGroup

	ahead      *walker    // stands still in the first instance; nil for none
	last       int        // buyer that made the latest step; -1 before the first
	changes    int        // releases and expiries so far: a buyer who polls asks again only after one
	timePassed bool       // so that the locks of dead buyers have run out
	done       []decision // in order
	cost       int        // of all decisions
	faulty     bool       // there was a fault
	ended      bool
}

// decision is an act, and what could have been done instead.
type decision struct {
	act
	instead []act
	at      time.Time // when it was done
	blocked bool      // the buyer could not go on after it
}

// walker is a buyer whose request is stepped.
type walker struct {
	*request
	giveUp  context.CancelFunc
	at      progress
	shared  []string // names of the recordings whose requests take its next step
	dead    bool
	expired bool // its lock has run out
	begun   bool // it has taken a step
	asked   int  // walk.changes when it asked for a lock last
}

// progress is how far a request has come, by what the shop has recorded.
type progress struct {
	next     string // the step that it has stopped before
	line     string // of the source, where it has stopped
	answered bool
	read     *int64 // units that it has seen as available
	holds    bool   // a lock
	taken    bool   // the key of a lock is set, but for more commands it does not hold it yet
	waits    bool   // for a lock
	asks     bool   // for a lock
	queued   bool   // in its instance, for its batch to begin
	batched  bool   // it is sold to in a batch
	sending  string // the statement that has no answer yet
	inTx     bool
	wrote    bool // in this transaction: it has locked a row of the stock
}

// progressOf reads a recording. polls says that a request asks for a lock again by itself after a refusal.
func progressOf(events []shopclient.RecordedEvent, polls bool) (p progress) {
	held := 0 // some are taken twice
	for _, e := range events {
		p.sending, p.queued = "", p.queued && e.Kind != SQL
		p.waits = p.waits && (!polls || e.Kind == Step)
		switch {
		case e.Kind == Step && e.Text == "queued":
			p.queued, p.batched = true, true
		case e.Kind == Step && e.Text == "lock-asked":
			p.asks = true
		case e.Kind == Step && e.Text == "lock-held":
			held, p.waits, p.taken, p.asks = held+1, false, false, false
		case e.Kind == Redis && setsKey.MatchString(e.Text):
			p.taken = e.Answer == "1"
		case e.Kind == Step && e.Text == "lock-contended":
			p.waits = true
		case e.Kind == Step && e.Text == "released":
			held--
		case e.Kind == Step && e.Text == "read":
			if n, err := strconv.ParseInt(strings.Fields(e.Answer + " ?")[0], 10, 64); err == nil {
				p.read = &n
			}
		case e.Kind == SQL && e.Answer == "":
			p.sending = e.Text
		case e.Kind == SQL && e.Text == "BEGIN":
			p.inTx, p.wrote = e.Answer == "OK", false
		case e.Kind == SQL && (e.Text == "COMMIT" || e.Text == "ROLLBACK"):
			p.inTx, p.wrote = false, false
		case e.Kind == SQL && locksRow(e.Text):
			p.wrote = p.inTx
		}
	}
	p.holds = held > 0
	return p
}

// setsKey matches the first of several commands that take a lock.
var setsKey = regexp.MustCompile(`^(SETNX|HINCRBY) `)

func locksRow(statement string) bool {
	return strings.HasPrefix(statement, "UPDATE skus ") || strings.Contains(statement, " skus ") && strings.HasSuffix(statement, "FOR UPDATE")
}

// instanceOf returns the index of the instance that a buyer uses.
func (a Arrangement) instanceOf(buyer int) int {
	if a.Together {
		return max(0, buyer-1)
	}
	return buyer
}

// order returns the lines of a buyer's order.
func (w *walk) order(buyer int) (lines []shopclient.Line) {
	for _, sku := range w.skus {
		lines = append(lines, shopclient.Line{SKU: sku, Units: 1})
	}
	if w.how.Opposite && buyer == 1 {
		slices.Reverse(lines)
	}
	return lines
}

// beginWalk puts units up for sale and lets all buyers ask for them, up to their first step.
func beginWalk(ctx context.Context, shops *instances, strategy shopclient.Strategy, how plan) (*walk, error) {
	suffix := "-" + strings.ToLower(rand.Text()[:8])
	w := &walk{
		shops: shops, strategy: strategy, units: how.Units, how: how.Arrangement,
		log: &journal{began: time.Now(), suffix: suffix}, last: -1,
	}
	for _, name := range []string{"mug", "tee"}[:max(1, how.Lines)] {
		w.skus = append(w.skus, name+suffix)
		if err := shops.clients[0].Create(ctx, name+suffix, how.Units); err != nil {
			return nil, err
		}
	}
	if how.Together {
		if err := w.occupy(ctx, "hat"+suffix); err != nil {
			return w, err
		}
	}
	for i := range how.Buyers {
		b := w.newBuyer(buyerNames[i:i+1], how.instanceOf(i), w.order(i)...)
		w.buyers = append(w.buyers, b)
		b.start(ctx, w)
		if err := w.settle(ctx); err != nil {
			return w, err
		}
	}
	if err := w.vacate(ctx); err != nil {
		return w, err
	}
	return w, w.settle(ctx)
}

// occupy has a request for another SKU stand still in the first instance: behind it gather those that a batch sells to.
func (w *walk) occupy(ctx context.Context, sku string) error {
	if err := w.shops.clients[0].Create(ctx, sku, 1); err != nil {
		return err
	}
	b := w.newBuyer("-", 0, shopclient.Line{SKU: sku, Units: 1})
	b.log = &journal{}
	w.ahead = b
	b.start(ctx, w)
	for w.look(ctx, b); b.at.next == "" && ctx.Err() == nil; w.look(ctx, b) {
		if !b.awaitChange(ctx) {
			shopclient.Pause(ctx, pollPause)
		}
	}
	return context.Cause(ctx)
}

// vacate lets the request of occupy end, if there is one.
func (w *walk) vacate(ctx context.Context) error {
	b := w.ahead
	if b == nil {
		return nil
	}
	w.ahead = nil
	defer b.giveUp()
	if err := b.move(context.WithoutCancel(ctx), shopclient.MoveResume); err != nil {
		return err
	}
	<-b.answered
	return nil
}

func (w *walk) newBuyer(name string, instance int, lines ...shopclient.Line) *walker {
	return &walker{request: &request{
		actor: name, shop: w.shops.clients[instance], log: w.log, answered: make(chan struct{}), recordings: map[int]shopclient.Recording{},
		purchase: shopclient.Purchase{
			Buyer: "buyer-" + strings.ToLower(name) + w.log.suffix, Key: w.skus[0] + "-" + strings.ToLower(name), Lines: lines,
			Strategy: w.strategy.Name, Steps: true,
		},
	}}
}

// start sends the buyer's request.
func (b *walker) start(ctx context.Context, w *walk) {
	ctx, b.giveUp = context.WithCancel(ctx)
	w.running.Go(func() { b.run(ctx) })
}

// end stops all that the walk has started.
func (w *walk) end(ctx context.Context) {
	if w.ended {
		return
	}
	w.ended = true
	_ = w.vacate(ctx)
	for _, b := range w.buyers {
		w.log.leave(b.actor)
		if !b.finished() { // it may also have stopped in what it does without its own context
			_ = b.move(context.WithoutCancel(ctx), shopclient.MoveResume)
		}
		b.giveUp()
	}
	w.running.Wait()
}

// look learns how far the buyer has come.
func (w *walk) look(ctx context.Context, b *walker) {
	recording, answered := b.recordingNow(ctx)
	b.at = progressOf(recording.Events, !w.renews())
	b.at.next, b.at.line, b.at.answered, b.shared = recording.Next, recording.Line, answered, recording.Shared
	b.at.queued = b.at.queued && b.at.next == ""
	b.expired = b.expired && b.at.holds
}

// polls reports whether the buyer asks for a lock again and again, and was refused last. Buyers who wait for a correct
// lock get it by themselves.
func (w *walk) polls(b *walker) bool { return b.at.waits && !w.renews() }

func (b *walker) finished() bool { return b.dead || b.at.answered && !b.at.holds }

// settle waits until each request stands still: it has stopped before a step, has ended, or waits for another.
func (w *walk) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleBound, errNotSettled)
	defer cancel()
	for {
		i := slices.IndexFunc(w.buyers, func(b *walker) bool { return !w.settled(b) })
		if i < 0 {
			return nil
		}
		for _, b := range w.buyers {
			if b.shop == w.buyers[i].shop || b.at.waits && w.renews() { // which of the waiting buyers gets the lock?
				w.look(ctx, b)
			}
		}
		switch b := w.buyers[i]; {
		case w.settled(b):
		case ctx.Err() != nil:
			return fmt.Errorf("%s after %q: %w", b.actor, b.at.sending, context.Cause(ctx))
		case b.at.waits || !b.awaitChange(ctx):
			select {
			case <-b.answered:
			case <-time.After(time.Millisecond):
			}
		}
	}
}

func (w *walk) settled(b *walker) bool {
	if b.at.next == "" && slices.ContainsFunc(w.buyers, func(other *walker) bool { return other != b && other.at.next != "" && other.sharesStep(b) }) {
		return b.finished() // it is about to stop with the other
	}
	inProcess := b.at.asks && w.sharesInstance(b)
	waits := (b.at.waits || inProcess) && w.renews() && !w.lockIsFree(b)
	return b.finished() || b.at.next != "" || waits || w.isBehind(b) || w.mustWait(b)
}

// sharesInstance reports whether the buyer's instance has another buyer's request also: a buyer who asks for a lock that the
// other holds waits in the process, unrecorded.
func (w *walk) sharesInstance(b *walker) bool {
	return slices.ContainsFunc(w.buyers, func(other *walker) bool { return other != b && other.shop == b.shop })
}

// isBehind reports whether the buyer waits in the queue of its instance for a batch that stands still.
func (w *walk) isBehind(b *walker) bool {
	return b.at.queued && (w.ahead != nil && b.shop == w.ahead.shop || slices.ContainsFunc(w.buyers, func(other *walker) bool {
		return other.shop == b.shop && !other.at.queued && !other.finished() && w.settled(other)
	}))
}

// sharesStep reports whether the other's request takes the same next step.
func (b *walker) sharesStep(other *walker) bool {
	return slices.Contains(b.shared, other.recordingName(int(other.tries.Load())))
}

// firstSharing returns the first buyer whose request takes the same next step as this one's.
func (w *walk) firstSharing(i int) int {
	return slices.IndexFunc(w.buyers, func(b *walker) bool {
		return b == w.buyers[i] || !b.finished() && w.buyers[i].sharesStep(b)
	})
}

// lockIsFree reports whether a buyer who waits for a correct lock gets it.
func (w *walk) lockIsFree(b *walker) bool {
	return !slices.ContainsFunc(w.buyers, func(other *walker) bool {
		apart := w.strategy.Lock == "memory" && other.shop != b.shop
		return other.at.holds && (!other.expired || other.shop == b.shop) && !apart // one process notices the end late
	})
}

// mustWait reports whether the buyer waits for another's transaction: for a row that it has locked or, in SQLite, for its
// end. There, a request does not send its BEGIN before: which of several that wait would get in?
func (w *walk) mustWait(b *walker) bool {
	return slices.ContainsFunc(w.buyers, func(other *walker) bool {
		inBatch := other.shop == b.shop && other.at.batched && b.at.batched // they share its transaction
		if other == b || other.dead || inBatch {
			return false
		}
		if w.shops.oneWriter {
			return b.at.next == "sql BEGIN" && other.at.inTx
		}
		return locksRow(b.at.sending) && other.at.wrote
	})
}

// canGoOn reports whether the buyer's next step would not be waiting.
func (w *walk) canGoOn(i int) bool {
	b := w.buyers[i]
	inVain := w.polls(b) && b.asked == w.changes || w.mustWait(b)
	return !b.finished() && b.at.next != "" && !inVain
}

// do makes an act and waits until all requests stand still again. ErrSchedule: the act is not possible now.
func (w *walk) do(ctx context.Context, d decision) error {
	b, next := w.buyers[d.buyer], w.buyers[d.buyer].at.next
	switch {
	case !w.possible(d.act):
		return fmt.Errorf("%w: %s cannot do that after %s", ErrSchedule, b.actor, w.name())
	case len(w.done) == maxActs:
		return fmt.Errorf("%s: more than %d steps: a request does not end", w.name(), maxActs)
	}
	w.cost, d.at = w.cost+w.price(d.act), time.Now()
	if asks.MatchString(next) {
		b.asked = w.changes
	}
	err := w.act(ctx, d.act)
	if err == nil {
		err = w.settle(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s, then %s: %w", w.name(), d.act, err)
	}
	if d.kind == steps && frees.MatchString(next) {
		w.changes++
	}
	w.faulty, d.blocked = w.faulty || d.kind != steps, !w.canGoOn(d.buyer)
	w.done = append(w.done, d)
	return nil
}

// errNoLock is an ErrSchedule: another buyer has deleted the lock that was to run out, or has its own there.
var errNoLock = fmt.Errorf("%w: there is no lock that could run out", ErrSchedule)

func (w *walk) act(ctx context.Context, a act) error {
	b := w.buyers[a.buyer]
	switch a.kind {
	case steps:
		for i, other := range w.buyers {
			if w.firstSharing(i) == w.firstSharing(a.buyer) {
				other.at.next, other.at.waits, other.begun = "", false, true
			}
		}
		w.last = a.buyer
		return b.move(ctx, shopclient.MoveStep)
	case dies:
		return w.kill(ctx, b)
	case expires:
		ran, err := w.expire(ctx, b)
		if err == nil && !ran {
			err = errNoLock
		}
		return err
	}
	w.log.add(b.actor, Schedule, "works for longer than a lock lives")
	shopclient.Pause(ctx, w.shops.ttl*3/2)
	if !w.renews() && w.endsByTime() {
		w.expireAll()
	}
	return nil
}

// name is that of what was done.
func (w *walk) name() string { return scheduleName(w.strategy.Name, w.units, w.how, w.done) }

var (
	// asks matches the first command by which a buyer who polls asks for a lock.
	asks = regexp.MustCompile(`^(redis (SET|SETNX|PSETEX|EXISTS)|sql INSERT INTO wrong_locks) `)

	// frees matches commands that may let in such a buyer.
	frees = regexp.MustCompile(`^(redis (DEL|EVAL|HINCRBY)|sql DELETE FROM wrong_locks) `)
)

// kill ends the buyer's request, and what else runs in its instance, as if the process had died.
func (w *walk) kill(ctx context.Context, b *walker) error {
	var killed []*walker
	for _, other := range w.buyers {
		if other == b || other.shop == b.shop && !other.finished() {
			killed = append(killed, other)
			other.dead = true
			other.gone.Store(true)
			w.log.leave(other.actor)
		}
	}
	if err := b.move(ctx, shopclient.MoveDie); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settleBound, errNotSettled)
	defer cancel()
	for _, b := range killed {
		for w.look(ctx, b); b.at.inTx; w.look(ctx, b) { // the database sees that the connection is gone
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			shopclient.Pause(ctx, pollPause)
		}
		b.giveUp()
		<-b.answered
	}
	return nil
}

// expire makes the lock that the buyer asked for run out. It reports whether it did: not all locks end by time.
func (w *walk) expire(ctx context.Context, b *walker) (ran bool, err error) {
	try := int(b.tries.Load())
	before := len(b.recordings[try].Events)
	if err := b.move(ctx, shopclient.MoveExpire); err != nil {
		return false, err
	}
	ran = slices.ContainsFunc(b.recordings[try].Events[before:], func(e shopclient.RecordedEvent) bool { return e.Text == runsOut })
	if ran {
		w.expireAll()
	}
	return ran, nil
}

// expireAll notes that all locks have run out.
func (w *walk) expireAll() {
	for _, b := range w.buyers {
		b.expired = b.expired || b.at.holds
	}
	w.changes++
}

// ownerless is a lock that does not end by time, but may be taken from its holder.
const ownerless = "mysql-lock-ownerless"

// letTimePass makes the locks of dead buyers run out. It reports whether a buyer who waits may go on by that.
func (w *walk) letTimePass(ctx context.Context) (helps bool, err error) {
	i := slices.IndexFunc(w.buyers, func(b *walker) bool { return !b.finished() && b.at.asks })
	died := slices.ContainsFunc(w.buyers, func(b *walker) bool { return b.dead })
	if i < 0 || !died || !w.endsByTime() || w.timePassed && w.lockIsFree(w.buyers[i]) {
		return false, nil
	}
	w.timePassed = true
	if helps, err = w.expire(ctx, w.buyers[i]); err != nil || !helps {
		return false, err
	}
	return true, w.settle(ctx)
}

// endsByTime reports whether the strategy's lock ends by its TTL. That of reentrant does so after its waiters have given up.
func (w *walk) endsByTime() bool {
	return !slices.Contains([]string{"", "memory", "reentrant", ownerless}, w.strategy.Lock)
}

// renews reports whether the strategy's lock is renewed while its holder works.
func (w *walk) renews() bool {
	return slices.Contains([]string{"memory", "redis", "redlock", "mysql", "zookeeper"}, w.strategy.Lock)
}

// position says what has come of it.
func (w *walk) position(ctx context.Context, over bool) (Position, error) {
	p := Position{
		Schedule: w.name(), Acts: []string{}, Strategy: w.strategy.Name,
		Designed: w.strategy.Designed, Units: w.units, Next: []string{}, Wrong: -1, Over: over,
	}
	for _, d := range w.done {
		p.Acts = append(p.Acts, d.String())
	}
	stuck, wanted := false, false
	for i, b := range w.buyers {
		is := Buyer{Name: b.actor, Instance: w.how.instanceOf(i) + 1, State: Waits, Next: strings.ReplaceAll(b.at.next, w.log.suffix, ""), Line: b.at.line, Holds: b.at.holds || b.at.taken, Expired: b.expired, Read: b.at.read}
		switch {
		case b.dead:
			is.State, is.Next = Died, ""
		case b.finished():
			is.State, is.Answer = Done, answerText(b.answer, b.err)
		case w.canGoOn(i):
			is.State = Ready
		}
		stuck = stuck || over && is.State == Waits
		wanted = wanted || is.State == Done && b.answer.Order.ID == ""
		p.Buyers = append(p.Buyers, is)
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

// possibleActs returns the acts of some kinds that can be done. Of buyers who are alike and have not begun, the first is next.
func (w *walk) possibleActs(kinds ...byte) (all []act) {
	for _, kind := range kinds {
		var begins [maxBuyers]bool // by likeness
		for i, b := range w.buyers {
			like := w.likeness(i)
			if a := (act{kind, i}); w.possible(a) && w.firstSharing(i) == i && (b.begun || kind == steps && !begins[like]) {
				all = append(all, a)
			}
			begins[like] = begins[like] || !b.begun && !b.finished()
		}
	}
	return all
}

// likeness is the same for buyers who are alike. Two with opposite orders are mirror images, and so alike; of three, the
// second is then unlike the others, and the third is alone in its instance if the first two are together.
func (w *walk) likeness(buyer int) int {
	if len(w.buyers) > 2 && (w.how.Opposite && buyer == 1 || w.how.Together && buyer == 2) {
		return buyer
	}
	return 0
}

// readBooks asks a shop that lives for what it has sold and has left.
func (w *walk) readBooks(ctx context.Context, p *Position) error {
	living := slices.IndexFunc(w.buyers, func(b *walker) bool { return !b.dead })
	if living < 0 {
		living = len(w.buyers) - 1 // its request has died, not the shop
	}
	shop := w.buyers[living].shop
	err := untilAvailable(ctx, func() (err error) {
		p.Stock.Available, p.Stock.Reserved, err = shop.Stock(ctx, w.skus[0])
		if err == nil {
			p.Sold, err = w.sold(ctx, shop)
		}
		return err
	})
	if w.strategy.Lock == "" || w.strategy.Lock == "memory" {
		return err
	}
	for _, b := range w.buyers {
		if state, unknown := b.shop.Lock(ctx, b.recordingName(int(b.tries.Load()))); unknown == nil { // also where it has asked for none
			p.Lock = &Lock{LockState: state}
		}
	}
	return err
}

// sold returns how many units are in orders: of the SKU that was sold too often if there is one, or else of the one that was
// sold least.
func (w *walk) sold(ctx context.Context, shop *shopclient.Client) (int64, error) {
	var units []int64
	for _, sku := range w.skus {
		audit, err := shop.Audit(ctx, sku)
		if err != nil {
			return 0, err
		}
		units = append(units, audit.Books.OrderedUnits)
	}
	if most := slices.Max(units); most > w.units {
		return most, nil
	}
	return slices.Min(units), nil
}

// readEvents collects what was recorded, with the act that each event belongs to.
func (w *walk) readEvents(p *Position) {
	for _, b := range w.buyers {
		for try := 1; try <= int(b.tries.Load()); try++ {
			w.log.addRecording(b.actor, b.recordings[try].Events)
		}
	}
	p.Events = w.log.sorted()
	for i := range p.Events {
		e := &p.Events[i]
		e.Noise = e.isNoise()
		at := w.log.began.Add(e.At)
		after := slices.IndexFunc(w.done, func(d decision) bool { return d.at.After(at) })
		if after < 0 {
			after = len(w.done)
		}
		e.Act = after - 1
		if fence := fenceRule.FindStringSubmatch(e.Text); fence != nil && e.Answer == "1 row" && strings.Contains(e.Text, "mug") {
			p.Stock.Fence, _ = strconv.ParseInt(fence[1], 10, 64) // digits
		}
		if p.Lock != nil && p.Lock.Owner != "" && strings.Contains(e.Text, p.Lock.Owner) {
			p.Lock.Holder = e.Actor
		}
	}
}

var fenceRule = regexp.MustCompile(`^UPDATE skus SET .* fence = (\d+) `)

// plan says what is played: the acts as far as they go, then each buyer to its end.
type plan struct {
	Bounds
	acts  []act
	part  bool // end with the acts
	loose bool // leave out acts that are not possible
}

// price is what an act adds to the cost of a schedule. To switch is free where the buyer cannot go on, or has just lost
// its lock while it stood still.
func (w *walk) price(a act) int {
	switch {
	case a.kind != steps:
		return 1
	case w.last < 0 || w.firstSharing(a.buyer) == w.firstSharing(w.last) || !w.canGoOn(w.last) || w.done[len(w.done)-1].kind == expires:
		return 0
	}
	return 1
}

// possible reports whether an act can be done now.
func (w *walk) possible(a act) bool {
	b := w.buyers[a.buyer]
	switch a.kind {
	case steps:
		return w.canGoOn(a.buyer)
	case dies, works:
		return !b.finished() && b.at.next != ""
	}
	return !b.dead && b.at.holds && !b.expired && (w.endsByTime() || w.strategy.Lock == ownerless)
}

// choices returns what is done next, where a buyer can go on, and what can be done instead within the bound. Only a buyer
// whose turn it is meets with a fault.
func (w *walk) choices(p plan) (next act, instead []act) {
	others := w.possibleActs(steps)
	last := w.last
	if last >= 0 {
		last = w.firstSharing(last)
	}
	next = others[max(0, slices.Index(others, act{steps, last}))]
	if p.Crash && !w.faulty {
		for _, a := range w.possibleActs(dies, expires) {
			if a.buyer == last || !w.canGoOn(last) {
				others = append(others, a)
			}
		}
	}
	for _, a := range others {
		if a != next && w.cost+w.price(a) <= p.Preemptions {
			instead = append(instead, a)
		}
	}
	return next, instead
}

// walkThrough plays a schedule. The decisions are what was done, with what could have been done instead.
func walkThrough(ctx context.Context, shops *instances, strategy shopclient.Strategy, p plan) (Position, []decision, error) {
	w, err := beginWalk(ctx, shops, strategy, p)
	if w != nil {
		defer w.end(ctx)
	}
	if err == nil {
		err = w.playActs(ctx, p)
	}
	if err != nil {
		return Position{}, nil, err
	}
	for {
		over, err := w.isStuck(ctx)
		if err != nil {
			return Position{}, nil, err
		}
		if over {
			w.end(ctx)
		}
		if over || p.part {
			played, err := w.position(ctx, over)
			return played, w.done, err
		}
		next, instead := w.choices(p)
		if err := w.do(ctx, decision{act: next, instead: instead}); err != nil {
			return Position{}, nil, err
		}
	}
}

// playActs does what the plan names. A step waits for time to pass where no buyer can go on without.
func (w *walk) playActs(ctx context.Context, p plan) error {
	for _, a := range p.acts {
		for a.kind == steps || a.kind == runs {
			if _, err := w.isStuck(ctx); err != nil {
				return err
			}
			if a.kind == steps || !w.canGoOn(a.buyer) {
				break
			}
			if err := w.do(ctx, decision{act: act{steps, a.buyer}}); err != nil {
				return err
			}
		}
		if a.kind == runs || p.loose && !w.possible(a) {
			continue
		}
		if err := w.do(ctx, decision{act: a}); err != nil && (!p.loose || !errors.Is(err, errNoLock)) {
			return err
		}
	}
	return nil
}

// isStuck reports whether no buyer can go on, also after locks have run out.
func (w *walk) isStuck(ctx context.Context) (bool, error) {
	for len(w.possibleActs(steps)) == 0 {
		if helps, err := w.letTimePass(ctx); err != nil || !helps {
			return true, err
		}
	}
	return false, nil
}
