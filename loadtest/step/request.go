package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"example.com/shop/internal/lab"
	"example.com/shop/loadtest/shopclient"
)

const (
	answerTimeout = 90 * time.Second       // for one try to buy: longer than any shop waits
	retryFor      = 30 * time.Second       // since the first try
	retryPause    = 100 * time.Millisecond // between two tries
)

// buyer is a buyer whose purchase is stepped. If the shop says that a retry is safe, the buyer tries
// again with the same key.
type buyer struct {
	name     string
	shop     *shopclient.Client
	purchase shopclient.Purchase
	log      *journal
	giveUp   context.CancelFunc

	tries    atomic.Int32
	gone     atomic.Bool       // the buyer gets no more answers, and does not try again
	answered chan struct{}     // closed after the last try
	answer   shopclient.Answer // of the last try; read after answered
	err      error             // of the last try: no answer

	recordings map[int]lab.Recording // by try, from 1: what the shop recorded, as far as look has seen it
	at         progress
	line       string   // of the source, where the buyer has stopped last
	lines      []string // all lines where the buyer has stopped
	dead       bool
	once       bool // the buyer does not try again
	expired    bool // its lock has run out
	begun      bool // it has taken a step
	asked      int  // walk.changes when it asked for a lock last
}

func (b *buyer) run(ctx context.Context) {
	defer close(b.answered)
	p := b.purchase
	for began := time.Now(); ; {
		p.Recording = b.recordingName(int(b.tries.Add(1)))
		b.log.add(b.name, HTTP, "POST /v1/orders")
		b.answer, b.err = b.shop.Buy(ctx, p)
		if b.gone.Load() {
			return
		}
		b.log.add(b.name, HTTP, answerText(b.answer, b.err))
		if b.err != nil || b.once || !b.answer.Problem.RetrySafe || time.Since(began) >= retryFor ||
			!shopclient.Pause(ctx, retryPause) || b.gone.Load() {
			return
		}
	}
}

func answerText(a shopclient.Answer, err error) string {
	switch {
	case err != nil:
		return "no answer: the connection broke"
	case a.Order.ID != "":
		return fmt.Sprintf("%d: order placed", a.Status)
	default:
		return fmt.Sprintf("%d: %s", a.Status, strings.ToLower(a.Problem.Title))
	}
}

func (b *buyer) finished() bool { return b.dead || b.at.answered && !b.at.holds }

func (b *buyer) try() int { return int(b.tries.Load()) }

func (b *buyer) recordingName(try int) string { return fmt.Sprintf("%s-%d", b.purchase.Key, try) }

// look learns how far the buyer has come. polls says that the request asks for a lock again by itself after a refusal.
func (b *buyer) look(ctx context.Context, polls bool) {
	answered := false
	select {
	case <-b.answered:
		answered = true
	default:
	}
	var latest lab.Recording
	for try := 1; try <= b.try(); try++ {
		if recording, err := b.shop.Recording(ctx, b.recordingName(try), 0); err == nil { // a killed process has none
			b.recordings[try] = recording
		}
		latest = b.recordings[try]
	}
	b.at = progressOf(latest.Events, polls)
	b.at.next, b.line, b.at.answered = latest.Next, cmp.Or(latest.Line, b.line), answered
	if b.line != "" && !slices.Contains(b.lines, b.line) {
		b.lines = append(b.lines, b.line)
	}
}

// awaitChange waits for a change in the latest recording. It returns false at once if the recording has
// not begun, or has ended and the answer is on its way.
func (b *buyer) awaitChange(ctx context.Context) bool {
	try := b.try()
	if b.recordings[try].State == lab.Ended {
		return false
	}
	_, err := b.shop.Recording(ctx, b.recordingName(try), b.recordings[try].Version)
	return err == nil
}

func (b *buyer) move(ctx context.Context, move lab.Move) error {
	return untilAvailable(ctx, func() error {
		try := b.try()
		recording, err := b.shop.Move(ctx, move, b.recordingName(try))
		if err == nil {
			b.recordings[try] = recording
		}
		return err
	})
}

// untilAvailable repeats a request that a busy shop refuses, for as long as a step may take.
func untilAvailable(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, settleBound)
	defer cancel()
	for {
		err := ask()
		if !errors.Is(err, shopclient.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		shopclient.Pause(ctx, retryPause)
	}
}

// progress is how far a request has come, by what the shop has recorded.
type progress struct {
	next      string // the step that it has stopped before
	answered  bool
	read      *int64 // units that the request has seen as available
	asks      bool   // for a lock
	asksNow   bool   // by the next command
	waits     bool   // for a lock
	holds     bool   // a lock
	sending   string // the statement that has no answer yet
	inTx      bool
	wrote     bool // in this transaction: it has locked the row of the stock
	readsInTx bool // in this transaction: the row of the stock
	ends      bool // in this transaction: it has locked the row of an order
	chosen    bool // as the victim of a deadlock: the database ended its transaction
}

// progressOf reads a recording. polls says that the request polls for its lock.
func progressOf(events []lab.Event, polls bool) (p progress) {
	held := 0 // locks; some are taken twice
	for _, e := range events {
		p.sending, p.asksNow = "", false
		p.waits = p.waits && (!polls || e.Kind == lab.KindStep)
		switch {
		case e.Kind == lab.KindStep && e.Text == "lock-asked":
			p.asks, p.asksNow = true, true
		case e.Kind == lab.KindStep && (e.Text == "lock-held" || e.Text == "holds"):
			held, p.waits, p.asks = held+1, false, false
		case e.Kind == lab.KindStep && e.Text == "lock-contended":
			p.waits, p.asksNow = true, true
		case e.Kind == lab.KindStep && e.Text == "released":
			held--
		case e.Kind == lab.KindStep && e.Text == "read":
			if n, err := strconv.ParseInt(strings.Fields(e.Answer + " ?")[0], 10, 64); err == nil {
				p.read = &n
			}
		case e.Kind == lab.KindRedis && e.Answer == "taken": // from a count
			held = 1
		case e.Kind == lab.KindRedis && e.Answer == "wait": // for other buyers that have taken units
			p.waits, p.asks = true, true
		case e.Kind == lab.KindSQL && strings.Contains(e.Answer, "Deadlock found"):
			p.chosen = true
		case e.Kind == lab.KindSQL && e.Answer == "":
			p.sending = e.Text
		case e.Kind == lab.KindSQL && e.Text == "BEGIN":
			p.inTx = e.Answer == "OK"
		case e.Kind == lab.KindSQL && (e.Text == "COMMIT" || e.Text == "ROLLBACK"):
			p.inTx, p.wrote, p.readsInTx, p.ends = false, false, false, false
		case e.Kind == lab.KindSQL && endsOrder.MatchString(e.Text):
			p.ends = p.inTx
		case e.Kind == lab.KindSQL && strings.HasPrefix(e.Text, "SELECT GET_LOCK("):
			held, p.waits, p.asks = held+1, false, false
		case e.Kind == lab.KindSQL && strings.HasPrefix(e.Text, "DO RELEASE_LOCK("):
			held--
		case e.Kind == lab.KindSQL && locksRow(e.Text):
			p.wrote = p.inTx
		case e.Kind == lab.KindSQL && readsRow(e.Text):
			p.readsInTx = p.inTx
		}
	}
	p.holds = held > 0
	return p
}

// endsOrder matches statements that lock the row of an order.
var endsOrder = regexp.MustCompile(`^(UPDATE orders |SELECT .* FROM orders .* FOR UPDATE SKIP LOCKED$)`)

func readsRow(statement string) bool {
	return strings.HasPrefix(statement, "SELECT ") && strings.Contains(statement, " skus ") && !locksRow(statement)
}

func locksRow(statement string) bool {
	return strings.HasPrefix(statement, "UPDATE skus ") || strings.Contains(statement, " skus ") && strings.HasSuffix(statement, "FOR UPDATE")
}
