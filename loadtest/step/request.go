package step

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"example.com/shop/internal/lab"
	"example.com/shop/loadtest/shopclient"
)

const (
	answerTimeout = 90 * time.Second       // of one try to buy: longer than any shop waits
	retryFor      = 30 * time.Second       // since the first try
	retryPause    = 100 * time.Millisecond // between two tries
	pollPause     = 2 * time.Millisecond   // between two looks where the shop has nothing to wait for
)

// request is a buyer's purchase. Where the shop says that this is safe, it is tried again with the same key.
type request struct {
	actor    string
	shop     *shopclient.Client
	purchase shopclient.Purchase
	log      *journal

	tries    atomic.Int32
	gone     atomic.Bool       // it gets no answer any more, and does not try again
	answered chan struct{}     // closed after the last try
	answer   shopclient.Answer // of the last try; read after answered
	err      error             // of the last try: no answer

	recordings map[int]lab.Recording // by try, from 1: what the shop recorded, as far as recordingNow has seen it
}

// run tries until the answer is final.
func (r *request) run(ctx context.Context) {
	defer close(r.answered)
	p := r.purchase
	for began := time.Now(); ; {
		p.Recording = r.recordingName(int(r.tries.Add(1)))
		r.log.add(r.actor, HTTP, "POST /v1/orders")
		r.answer, r.err = r.shop.Buy(ctx, p)
		if r.gone.Load() {
			return
		}
		r.log.add(r.actor, HTTP, answerText(r.answer, r.err))
		if r.err != nil || !r.answer.Problem.RetrySafe || time.Since(began) >= retryFor {
			return
		}
		if shopclient.Pause(ctx, retryPause); r.gone.Load() {
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

// recordingName is the name of a try's recording.
func (r *request) recordingName(try int) string { return fmt.Sprintf("%s-%d", r.purchase.Key, try) }

// recordingNow returns the recording of the latest try, and whether the last answer has come. One goroutine at a time
// may call it.
func (r *request) recordingNow(ctx context.Context) (latest lab.Recording, answered bool) {
	select {
	case <-r.answered:
		answered = true
	default:
	}
	for try := 1; try <= int(r.tries.Load()); try++ {
		if recording, err := r.shop.Recording(ctx, r.recordingName(try), 0); err == nil { // a killed process has none
			r.recordings[try] = recording
		}
		latest = r.recordings[try]
	}
	return latest, answered
}

// awaitChange waits for a change in the recording of the latest try. It reports false at once if the recording has not
// begun, or has ended and the answer is on its way.
func (r *request) awaitChange(ctx context.Context) bool {
	try := int(r.tries.Load())
	if r.recordings[try].State == lab.Ended {
		return false
	}
	_, err := r.shop.Recording(ctx, r.recordingName(try), r.recordings[try].Version)
	return err == nil
}

func (r *request) move(ctx context.Context, move lab.Move) error {
	return untilAvailable(ctx, func() error {
		try := int(r.tries.Load())
		recording, err := r.shop.Move(ctx, move, r.recordingName(try))
		if err == nil {
			r.recordings[try] = recording
		}
		return err
	})
}

// untilAvailable repeats what a busy shop refuses, for as long as a step may take.
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
