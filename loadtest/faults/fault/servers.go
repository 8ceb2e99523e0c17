package fault

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/shopclient"
)

// leaveLeases writes values of no known layout, which the lock takes for leases until they are gone.
func leaveLeases(ctx context.Context, t *Target) error {
	const last = 3 * time.Second
	for _, sku := range t.History.SKUs.All() {
		if err := t.Redis.Redis(ctx, "SET", "lock:{sku:"+sku+"}", "crashed", "PX", last.Milliseconds()); err != nil {
			return err
		}
	}
	shopclient.Pause(ctx, last)
	return nil
}

func flushRedis(ctx context.Context, t *Target) error {
	for range 3 + t.Dice.IntN(5) {
		if err := t.Redis.Redis(ctx, "FLUSHALL"); err != nil {
			return err
		}
		t.wait(ctx, 0, 100*time.Millisecond)
	}
	return nil
}

// fillRedis sets a limit that any Redis exceeds. Redis evicts nothing (noeviction), so it refuses what may need memory.
func fillRedis(ctx context.Context, t *Target) error {
	if err := t.Redis.Redis(ctx, "CONFIG", "SET", "maxmemory", "1"); err != nil {
		return err
	}
	t.wait(ctx, pastTTL, 2*pastTTL)
	return t.Redis.Redis(ctx, "CONFIG", "SET", "maxmemory", "0")
}

func restartRedis(ctx context.Context, t *Target) error { return restart(ctx, t, t.Redis) }

func killMySQL(ctx context.Context, t *Target) error { return restart(ctx, t, t.MySQL[0]) }

// killUnflushed kills a MySQL that flushes its logs once a second, not at each commit. The restart ends these settings.
func killUnflushed(ctx context.Context, t *Target) error {
	if err := t.MySQL[0].SQL(ctx, "SET GLOBAL innodb_flush_log_at_trx_commit = 0", "SET GLOBAL sync_binlog = 0"); err != nil {
		return err
	}
	t.wait(ctx, 300*time.Millisecond, time.Second)
	return killMySQL(ctx, t)
}

func restart(ctx context.Context, t *Target, s *system.Server) error {
	t.History.Kills++
	if err := s.Kill(ctx); err != nil {
		return err
	}
	t.wait(ctx, 0, 500*time.Millisecond)
	return s.Start(ctx)
}

// failOver cuts the replicas off, so that they lack the leases that the master grants from then on, and kills the master.
func failOver(ctx context.Context, t *Target) error {
	if err := t.RedisGroup.CutReplicas(ctx); err != nil {
		return err
	}
	t.wait(ctx, 100*time.Millisecond, time.Second)
	t.History.Kills++
	if err := t.RedisGroup.FailOver(ctx); err != nil {
		return err
	}
	t.History.Replaced = t.History.Now()
	return t.RedisGroup.Restore(ctx)
}

// moveSlots moves the slots of two SKUs to another master, and back. Each stays half-moved for longer than leases last.
func moveSlots(ctx context.Context, t *Target) error {
	for _, further := range []int{1, 2} { // of three masters
		for _, sku := range []string{t.History.SKUs.Deep, t.History.SKUs.Hot} {
			first := "lock:{sku:" + sku + "}"
			if t.Dice.IntN(2) == 0 {
				first += ":line"
			}
			if err := t.RedisGroup.MoveSlot(ctx, further, func() { t.wait(ctx, pastTTL, 2*pastTTL) }, first); err != nil {
				return err
			}
		}
	}
	return nil
}

// Which links a fault breaks.
func everyRedis(t *Target) (links []*testserver.Link) {
	for _, shop := range t.Shops {
		links = append(links, shop.Redis)
	}
	return links
}
func oneRedis(t *Target) []*testserver.Link { return []*testserver.Link{t.victim().Redis} }
func oneMySQL(t *Target) []*testserver.Link { return t.victim().SQL }

func silence(choose func(*Target) []*testserver.Link, requests, answers bool, least time.Duration) func(context.Context, *Target) error {
	return func(ctx context.Context, t *Target) error {
		for _, link := range choose(t) {
			defer link.Heal()
			link.Silence(requests, answers)
		}
		t.wait(ctx, least, least+pastTTL)
		return nil
	}
}

func delay(choose func(*Target) []*testserver.Link) func(context.Context, *Target) error {
	return func(ctx context.Context, t *Target) error {
		for _, link := range choose(t) {
			defer link.Heal()
			link.Delay(5 * time.Second)
		}
		t.wait(ctx, 5*time.Second, 6*time.Second)
		return nil
	}
}

// loseCommits breaks the connections of a third of all COMMITs, for a second.
func loseCommits(fate testserver.Fate) func(context.Context, *Target) error {
	return func(ctx context.Context, t *Target) error {
		var mu sync.Mutex // links ask at once
		judge := func(statement string) testserver.Fate {
			mu.Lock()
			defer mu.Unlock()
			if statement != "COMMIT" || t.Dice.IntN(3) > 0 {
				return testserver.Pass
			}
			t.Commits.Add(1)
			return fate
		}
		for _, shop := range t.Shops {
			for _, link := range shop.SQL {
				defer link.Heal()
				link.Judge(judge)
			}
		}
		shopclient.Pause(ctx, time.Second) // the links have the dice
		return nil
	}
}

func breakConnections(ctx context.Context, t *Target) error {
	for range 3 {
		for _, shop := range t.Shops {
			for _, link := range shop.SQL {
				link.Cut(false)
			}
		}
		t.wait(ctx, 50*time.Millisecond, 300*time.Millisecond)
	}
	return nil
}

// lockRows locks the rows for 2.5 s: two statements of a shop in a row time out after 1 s each.
func lockRows(ctx context.Context, t *Target) error {
	return t.MySQL[0].SQL(ctx, "BEGIN", "SELECT name FROM shop.skus WHERE name IN ('"+t.History.SKUs.Hot+"', '"+t.History.SKUs.Deep+"') FOR UPDATE",
		"DO SLEEP(2.5)", "ROLLBACK")
}

// deadlock locks the rows of carts in the other sequence, for a second. Its transactions have written more than a shop's,
// so that MySQL rolls those back.
func deadlock(ctx context.Context, t *Target) error {
	for end := time.Now().Add(time.Second); time.Now().Before(end) && ctx.Err() == nil; {
		var rows []string
		for range 100 {
			rows = append(rows, fmt.Sprintf("('%s')", uuid.NewString()))
		}
		err := t.MySQL[0].SQL(ctx, "BEGIN", "INSERT INTO shop.buyers (buyer) VALUES "+strings.Join(rows, ","),
			"SELECT name FROM shop.skus WHERE name = '"+t.History.SKUs.Hot+"' FOR UPDATE", "DO SLEEP(0.02)",
			"SELECT name FROM shop.skus WHERE name = '"+t.History.SKUs.Cold+"' FOR UPDATE", "ROLLBACK")
		if err != nil && !strings.Contains(err.Error(), "Error 1213 ") {
			return err
		}
	}
	return nil
}

// makeReadOnly keeps even root, the shops' user, from writing.
func makeReadOnly(ctx context.Context, t *Target) error {
	if err := t.MySQL[0].SQL(ctx, "SET GLOBAL super_read_only = 1"); err != nil {
		return err
	}
	t.wait(ctx, pastTTL, 2*pastTTL)
	return t.MySQL[0].SQL(ctx, "SET GLOBAL read_only = 0")
}

func fillDisk(ctx context.Context, t *Target) error {
	if err := t.MySQL[0].FillDisk(ctx); err != nil {
		return err
	}
	t.wait(ctx, 500*time.Millisecond, 2*time.Second)
	return t.MySQL[0].FreeDisk(ctx)
}
