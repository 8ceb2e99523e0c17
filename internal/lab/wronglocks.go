package lab

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/strategy"
)

const (
	// shortTTL is shorter than an order takes, whose transaction alone is about as long.
	shortTTL = 2 * time.Millisecond

	// freeBound is the time limit for giving a lock back, stops included.
	freeBound = time.Minute

	// A waiter asks again after a random time, at first up to firstPause, and each time up to twice as long, so that a
	// thousand of them leave Redis some room.
	firstPause   = 2 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// LockOptions are the options of the wrong locks.
type LockOptions struct {
	TTL      time.Duration // of the locks whose mistake is not a short TTL
	ShortTTL time.Duration // of the other locks; 0 means 2 ms
	MaxWait  time.Duration // for a lock
}

// WrongLocks returns locks over Redis that are WRONG, each by one well-known mistake and right in everything else, by
// the names of the strategies that sell with them. The lessons explain the mistakes. Copy package lock instead.
//
// Each is made of the Redis commands that articles and bug reports show; reentrant-count is a script of
// Redisson, command by command. Waiters poll, as such code does, and a holder is not notified that its
// lock is over: that is what a lease is for.
func WrongLocks(client redis.UniversalClient, o LockOptions) map[string]strategy.Locker {
	short := cmp.Or(o.ShortTTL, shortTTL)
	locks := map[string]strategy.Locker{}
	for name, l := range map[string]wrongLock{
		"setnx-expire": {ttl: o.TTL, take: takeInTwoSteps, free: compareAndDelete},
		"setex":        {ttl: o.TTL, take: overwrite, free: compareAndDelete},
		"blind-del":    {ttl: short, take: setIfAbsent, free: deleteBlindly},
		"get-then-del": {ttl: o.TTL, take: setIfAbsent, free: getThenDelete},
		"short-lease":  {ttl: short, take: setIfAbsent, free: compareAndDelete},
		"try-once":     {ttl: o.TTL, take: setIfAbsent, free: compareAndDelete, once: true},

		"reentrant":       {ttl: o.TTL + o.MaxWait, take: setIfAbsent, free: compareAndDelete}, // its holder gives up before
		"reentrant-count": {ttl: o.TTL, take: countUp, free: countDown},
	} {
		l.client, l.prefix, l.maxWait = client, "wrong:"+name+":", o.MaxWait
		locks[name] = l
	}
	return locks
}

// takeInTwoSteps is WRONG: a process that dies after SETNX, or whose EXPIRE is lost, leaves a key that never ends.
// The lock cannot be taken again until its key is deleted by hand. SET key owner NX PX ttl is one step.
func takeInTwoSteps(ctx context.Context, client redis.UniversalClient, key, owner string, ttl time.Duration) (bool, error) {
	taken, err := client.Do(ctx, "SETNX", key, owner).Bool()
	if err != nil || !taken {
		return false, err
	}
	return true, client.PExpire(ctx, key, ttl).Err()
}

// overwrite is WRONG: without NX, SET takes the lock from its holder, and every caller succeeds. It is meant to avoid
// the two steps of SETNX and EXPIRE.
func overwrite(ctx context.Context, client redis.UniversalClient, key, owner string, ttl time.Duration) (bool, error) {
	err := client.Do(ctx, "PSETEX", key, ttl.Milliseconds(), owner).Err()
	return err == nil, err
}

// setIfAbsent and compareAndDelete are right, as far as a lock without a fence can be: each is one step. What
// short-lease does wrong is its TTL, after which its holder goes on as if nothing had happened.
func setIfAbsent(ctx context.Context, client redis.UniversalClient, key, owner string, ttl time.Duration) (bool, error) {
	err := client.Do(ctx, "SET", key, owner, "NX", "PX", ttl.Milliseconds()).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

const compareSource = `
	if redis.call("GET", KEYS[1]) == ARGV[1] then
		return redis.call("DEL", KEYS[1])
	end
	return 0`

var compareScript = lock.Script{Script: redis.NewScript(compareSource), Name: "compare-and-delete", Source: compareSource}

func compareAndDelete(ctx context.Context, client redis.UniversalClient, key, owner string) error {
	return compareScript.Eval(ctx, client, []string{key}, owner).Err() // one command, where EVALSHA may take two
}

// deleteBlindly is WRONG: if the holder's time ran out meanwhile, the key is another holder's. DEL lets a third in
// while the second works, whose DEL lets in a fourth.
func deleteBlindly(ctx context.Context, client redis.UniversalClient, key, _ string) error {
	return client.Del(ctx, key).Err()
}

// getThenDelete is WRONG: between GET and DEL the holder's time can run out and the key become another holder's, the
// more easily the slower the network or the longer a pause of the process.
func getThenDelete(ctx context.Context, client redis.UniversalClient, key, owner string) error {
	holder, err := client.Get(ctx, key).Result()
	if err != nil || holder != owner {
		return err
	}
	return client.Del(ctx, key).Err()
}

// countUp is WRONG: two owners can both see that there is no key, and a process that dies before
// PEXPIRE leaves one that never ends.
func countUp(ctx context.Context, client redis.UniversalClient, key, owner string, ttl time.Duration) (bool, error) {
	held, err := client.Do(ctx, "EXISTS", key).Bool()
	if err != nil {
		return false, err
	}
	if held {
		if mine, err := client.Do(ctx, "HEXISTS", key, owner).Bool(); err != nil || !mine {
			return false, err
		}
	}
	if err := client.HIncrBy(ctx, key, owner, 1).Err(); err != nil {
		return false, err
	}
	return true, client.PExpire(ctx, key, ttl).Err()
}

// countDown is WRONG: it does not ask whether the owner still has the lock. If not, its count begins
// below zero, and DEL takes the lock from its holder.
func countDown(ctx context.Context, client redis.UniversalClient, key, owner string) error {
	left, err := client.HIncrBy(ctx, key, owner, -1).Result()
	if err != nil || left > 0 {
		return err
	}
	return client.Del(ctx, key).Err()
}

// OwnerlessRow returns a lock that is WRONG: a row in a table says that it is taken, but neither by
// whom nor until when. A process that dies leaves its row for ever. A person or a job that deletes the
// row does not know whether the holder still works. A holder whose row was deleted does not notice, and
// then deletes the row of the next holder. Waiters poll.
//
// It creates the table wrong_locks, which belongs to the teaching shop and so is in no migration.
func OwnerlessRow(ctx context.Context, db *sql.DB, maxWait time.Duration) (strategy.Locker, error) {
	_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS wrong_locks (name VARBINARY(255) NOT NULL PRIMARY KEY)")
	if err != nil {
		return nil, fmt.Errorf("create table wrong_locks: %w", err)
	}
	take := func(ctx context.Context, _ redis.UniversalClient, key, _ string, _ time.Duration) (bool, error) {
		_, err := db.ExecContext(ctx, "INSERT INTO wrong_locks (name) VALUES (?)", key)
		if isDuplicate(err) {
			return false, nil
		}
		return err == nil, err
	}
	free := func(ctx context.Context, _ redis.UniversalClient, key, _ string) error {
		_, err := db.ExecContext(ctx, "DELETE FROM wrong_locks WHERE name = ?", key)
		return err
	}
	there := func(ctx context.Context, key string) (found bool) {
		return db.QueryRowContext(ctx, "SELECT 1 FROM wrong_locks WHERE name = ?", key).Scan(&found) == nil
	}
	return wrongLock{maxWait: maxWait, take: take, free: free, there: there}, nil
}

// wrongLock is one of the wrong locks: how it is taken and given back. Both get the owner: the
// strategy.Holder, or else a random text.
type wrongLock struct {
	client  redis.UniversalClient
	prefix  string
	maxWait time.Duration
	ttl     time.Duration
	once    bool // it is asked for once
	take    func(ctx context.Context, client redis.UniversalClient, key, owner string, ttl time.Duration) (taken bool, err error)
	free    func(ctx context.Context, client redis.UniversalClient, key, owner string) error
	there   func(ctx context.Context, key string) bool // of a row
}

// AcquireWith implements strategy.Locker, for all of the keys.
func (l wrongLock) AcquireWith(ctx context.Context, key string, others ...string) (strategy.Leases, error) {
	return l.AcquireAll(ctx, append([]string{key}, others...)...)
}

// AcquireAll implements strategy.Locker. Its error is a lock.ErrNotAcquired, joined with the reason.
func (l wrongLock) AcquireAll(ctx context.Context, keys ...string) (strategy.Leases, error) {
	held := &wrongLeases{lock: l, ctx: ctx, owner: cmp.Or(strategy.Holder(ctx), rand.Text())}
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		if err := l.poll(ctx, l.prefix+key, held.owner); err != nil {
			_ = held.Release() //nolint:contextcheck // it has its own
			return nil, fmt.Errorf("lock %q: %w: %w", key, lock.ErrNotAcquired, err)
		}
		held.keys = append(held.keys, l.prefix+key)
	}
	return held, nil
}

// Holder returns the owner of a lock, and how long it has it. A row has no owner: only that it is there is known.
func (l wrongLock) Holder(ctx context.Context, key string) (h lock.Holder, err error) {
	if l.client == nil {
		if l.there(ctx, key) {
			h.Owner = "a row"
		}
		return h, nil
	}
	key = l.prefix + key
	if h.Owner, err = l.client.Get(ctx, key).Result(); redis.HasErrorPrefix(err, "WRONGTYPE") { // a count by owner
		var owners []string
		owners, err = l.client.HKeys(ctx, key).Result()
		h.Owner = strings.Join(order.Map(owners, func(owner string) string { return short(owner) }), ", ")
	}
	if errors.Is(err, redis.Nil) {
		return h, nil
	}
	left, ttlErr := l.client.PTTL(ctx, key).Result()
	h.Remaining = max(0, left)
	return h, cmp.Or(err, ttlErr)
}

// ForceRelease ends a lock whose TTL is shorter than its waiters' patience; lock.ErrLost for any other. The lock of a
// row is deleted, as by a job that cleans up.
func (l wrongLock) ForceRelease(ctx context.Context, key string) (lock.Holder, error) {
	if l.client == nil {
		return lock.Holder{}, l.free(ctx, nil, key, "")
	}
	left, err := l.client.PTTL(ctx, l.prefix+key).Result()
	switch {
	case err != nil:
		return lock.Holder{}, err
	case left <= 0 || left > l.maxWait:
		return lock.Holder{}, lock.ErrLost
	}
	return lock.Holder{}, l.client.Del(ctx, l.prefix+key).Err()
}

// poll asks for the lock until it is taken, ctx ends, or LockOptions.MaxWait has passed, which is a lock.ErrTimeout.
func (l wrongLock) poll(ctx context.Context, key, owner string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.maxWait, lock.ErrTimeout)
	defer cancel()
	for most := firstPause; ; most = min(2*most, longestPause) {
		taken, err := l.take(ctx, l.client, key, owner, l.ttl)
		switch {
		case ctx.Err() != nil && (err != nil || !taken):
			return context.Cause(ctx)
		case err != nil || taken:
			return err
		}
		workIn(ctx).of.add(KindStep, stepContended, "held by another")
		if l.once {
			return lock.ErrTimeout
		}
		if err := order.Pause(ctx, 1+mathrand.N(most)); err != nil {
			return err
		}
	}
}

// wrongLeases have no fence and no end that their holder would know of.
type wrongLeases struct {
	lock  wrongLock
	ctx   context.Context //nolint:containedctx // Context returns it
	owner string
	keys  []string
}

func (l *wrongLeases) Context() context.Context                   { return l.ctx }
func (l *wrongLeases) Fence(string) int64                         { return 0 }
func (l *wrongLeases) Raise(context.Context, string, int64) error { return nil }
func (l *wrongLeases) Remaining() time.Duration                   { return math.MaxInt64 }

// Release gives the locks back. If that fails for a lock, the TTL, if there is one, ends the lock.
func (l *wrongLeases) Release() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), freeBound)
	defer cancel()
	var errs []error
	for _, key := range slices.Backward(l.keys) {
		errs = append(errs, l.lock.free(ctx, l.lock.client, key, l.owner))
	}
	l.keys = nil
	return errors.Join(errs...)
}
