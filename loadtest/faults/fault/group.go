package fault

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/testserver"
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
			t.History.Kills++
		}
		if err := old.Do(ctx, do); err != nil {
			return err
		}
		if _, err = t.Group.Primary(ctx, old); err == nil {
			t.History.Replaced = t.History.Now()
		}
		t.wait(ctx, 0, time.Second)
		return errors.Join(err, old.Do(ctx, undo), t.Group.Rejoin(ctx))
	}
}

// loseMajority kills both secondaries, one after the other, at most 0.3 s apart. The primary is not read-only, and its
// commits wait; to form the group anew, it is also killed.
func loseMajority(ctx context.Context, t *Target) error {
	kept, err := t.Group.Primary(ctx)
	if err != nil {
		return err
	}
	for _, member := range t.Group.Servers {
		if member != kept {
			t.History.Kills++
			if err := member.Do(ctx, testserver.Kill); err != nil {
				return err
			}
			t.wait(ctx, 0, 300*time.Millisecond)
		}
	}
	t.wait(ctx, 0, 2*time.Second)
	for _, member := range t.Group.Servers {
		if member != kept {
			if err := member.Do(ctx, testserver.Restart); err != nil {
				return err
			}
		}
	}
	t.History.Kills++ // of the primary, by Rejoin
	return t.Group.Rejoin(ctx)
}

// LoseMachine cuts the primary off from the others, so that they do not receive what it still acknowledges, and kills it 0.3
// to 0.6 s later. It returns when another member is the primary, or when the replica was promoted with all that it has
// received.
func LoseMachine(ctx context.Context, t *Target) (err error) {
	t.wait(ctx, time.Second, 2*time.Second) // of sales
	old := t.MySQL[0].Server
	if t.Group != nil {
		if old, err = t.Group.Primary(ctx); err != nil {
			return err
		}
	}
	if err := old.Do(ctx, testserver.Isolate); err != nil {
		return err
	}
	t.wait(ctx, 300*time.Millisecond, 600*time.Millisecond)
	t.History.Kills++
	if err := old.Do(ctx, testserver.Kill); err != nil {
		return err
	}
	if t.Group != nil {
		_, err = t.Group.Primary(ctx, old)
		return err
	}
	return t.MySQL[1].Promote(ctx)
}
