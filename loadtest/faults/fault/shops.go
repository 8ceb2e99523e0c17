package fault

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/faults/system"
)

const (
	pastTTL  = system.LockTTL + 300*time.Millisecond // longer than a lease lasts after its last renewal
	pastWait = 2500 * time.Millisecond               // longer than any shop by lanes may take to answer
)

func nothing(ctx context.Context, t *Target) error {
	t.wait(ctx, pastTTL, 2*pastTTL)
	return nil
}

func killShop(ctx context.Context, t *Target) error {
	victim := t.victim()
	t.History.Kills++
	if err := victim.Kill(); err != nil {
		return err
	}
	t.wait(ctx, 0, pastTTL)
	return victim.Start(ctx)
}

func pauseShop(ctx context.Context, t *Target) error {
	victim := t.victim()
	if err := victim.Pause(); err != nil {
		return err
	}
	t.wait(ctx, pastTTL, 2*pastTTL)
	return victim.Resume()
}

// pauseAt pauses a shop as it sends a statement, which arrives when the shop goes on.
func pauseAt(statement string) func(context.Context, *Target) error {
	return func(ctx context.Context, t *Target) error {
		victim := t.victim()
		paused, resume := make(chan error, 1), make(chan struct{})
		var first sync.Once
		for _, link := range victim.SQL {
			defer link.Heal()
			link.Judge(func(sent string) testserver.Fate {
				if strings.HasPrefix(sent, statement) {
					first.Do(func() { paused <- victim.Pause(); <-resume })
				}
				return testserver.Pass
			})
		}
		defer close(resume)
		select {
		case err := <-paused:
			if err != nil {
				return err
			}
		case <-time.After(5 * time.Second):
			return errors.New("the shop sent no " + statement)
		}
		t.wait(ctx, pastTTL, 2*pastTTL)
		return victim.Resume()
	}
}

func restartAll(ctx context.Context, t *Target) error {
	for _, shop := range t.Shops {
		if err := shop.Stop(ctx); err != nil {
			return err
		}
		if err := shop.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// moveClocks restarts two shops with other clocks, and again with the right ones.
func moveClocks(ctx context.Context, t *Target) error {
	first := t.Dice.IntN(len(t.Shops))
	for _, shift := range []time.Duration{time.Hour, 0} {
		for i, clock := range []time.Duration{shift, -shift} {
			shop := t.Shops[(first+i)%len(t.Shops)]
			if err := shop.Stop(ctx); err != nil {
				return err
			}
			shop.Clock = clock
			if err := shop.Start(ctx); err != nil {
				return err
			}
		}
		t.wait(ctx, pastTTL, 2*pastTTL)
	}
	return nil
}
