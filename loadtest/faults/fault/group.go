package fault

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/faults/system"
)

// withoutPrimary does something to the primary, waits until another member takes writes, undoes it, and has all members
// join again.
func withoutPrimary(do, undo testserver.Fault) func(context.Context, *Target) error {
	return func(ctx context.Context, t *Target) error {
		old, err := t.Group.Primary(ctx)
		if err != nil {
			return err
		}
		if do == testserver.Kill {
			t.Kills++
		}
		if err := old.Do(ctx, do); err != nil {
			return err
		}
		for now := old; now == old && err == nil; system.Pause(ctx, 50*time.Millisecond) {
			now, err = t.Group.Primary(ctx)
		}
		t.wait(ctx, 0, time.Second)
		return errors.Join(err, old.Do(ctx, undo), t.Group.Rejoin(ctx))
	}
}

// loseMajority kills two members, one after the other or nearly so. The third takes no writes, and is not read-only.
func loseMajority(ctx context.Context, t *Target) error {
	kept := t.Dice.IntN(len(t.Group.Members))
	for i, member := range t.Group.Members {
		if i != kept {
			t.Kills++
			if err := member.Do(ctx, testserver.Kill); err != nil {
				return err
			}
			t.wait(ctx, 0, 300*time.Millisecond)
		}
	}
	t.wait(ctx, 0, 2*time.Second)
	for i, member := range t.Group.Members {
		if i != kept {
			if err := member.Do(ctx, testserver.Restart); err != nil {
				return err
			}
		}
	}
	return t.Group.Rejoin(ctx)
}

// promote is what an operator does whose source has died. That the replica is behind is no accident: nothing waits for it.
func promote(ctx context.Context, t *Target) error {
	t.Kills++
	return errors.Join(t.Replicas.Servers[0].Do(ctx, testserver.Kill), t.Replicas.Promote(ctx))
}

// promoteLate has the source give up waiting for its replica first.
func promoteLate(ctx context.Context, t *Target) error {
	if err := t.Replicas.Servers[1].SQL(ctx, "STOP REPLICA IO_THREAD"); err != nil {
		return err
	}
	t.wait(ctx, 300*time.Millisecond, 600*time.Millisecond)
	return promote(ctx, t)
}
