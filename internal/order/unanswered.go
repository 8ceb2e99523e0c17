package order

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	placeTries = 3 // of an order whose COMMITs are neither answered nor done

	askBound     = 10 * time.Second // for asking what a COMMIT came to
	askPause     = 50 * time.Millisecond
	lastAskPause = askPause << 4 // doubled each time: it is asked five times
)

// errAsked ends a transaction that only asks.
var errAsked = errors.New("idempotency key is free")

// placing is InTx for the transaction that places o. It finds out by itself what
// a COMMIT without an answer came to: one that was done is an order that is
// placed, one that was not is done again. ErrUnknownOutcome: there was no answer
// to that question either.
func (s *Service) placing(ctx context.Context, o Order, fn func(Tx) error) error {
	for range placeTries {
		err := s.store.InTx(ctx, fn)
		if !errors.Is(err, ErrUnknownOutcome) {
			return err
		}
		placed, unknown := s.isPlaced(ctx, o)
		if unknown != nil {
			// Not wrapped: an ErrBusy of whoever asked would say that nothing was changed.
			return fmt.Errorf("%w; asked for it: %s", err, unknown.Error())
		}
		if placed {
			return nil
		}
	}
	return fmt.Errorf("%w: %d commits were rolled back", ErrBusy, placeTries)
}

// isPlaced tells whether an unanswered COMMIT placed o. A plain read proves
// nothing: it may come before that COMMIT has been done. Another transaction
// that writes the row of o's key waits until the first has ended, and only then
// is o there or not. If somebody else's row is there, o is not.
func (s *Service) isPlaced(ctx context.Context, o Order) (placed bool, err error) {
	err = ask(ctx, func(ctx context.Context) error {
		err := s.store.InTx(ctx, func(tx Tx) error {
			if err := tx.ClaimKeys(Claim{Order: o}); err != nil {
				return err
			}
			return errAsked
		})
		if !errors.Is(err, errAsked) && !errors.Is(err, ErrKeyTaken) {
			return err
		}
		_, err = s.store.Order(ctx, o.ID)
		placed = err == nil
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	})
	return placed, err
}

// ask asks what an unanswered COMMIT came to until that is told without an
// error, at most a few times: a lost connection, the next one in the pool that
// is dead, too, or a lock that the unanswered transaction still holds tell
// nothing about it. As the COMMIT, it does not heed the cancellation of ctx.
func ask(ctx context.Context, question func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askBound)
	defer cancel()
	for pause := askPause; ; pause *= 2 {
		if err = question(ctx); err == nil || pause == lastAskPause {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
