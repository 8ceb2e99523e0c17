package lock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// batches runs scripts on one server. A few requests are on their way at a time,
// each on a connection of its own; those that come meanwhile are sent together as
// soon as one of these is answered, on its connection. So nobody waits while there
// is little to do, and under load a system call carries many requests.
type batches struct {
	client redis.UniversalClient
	off    bool // a cluster is many servers: one that is slow must not hold up the rest

	mu      sync.Mutex // never held during I/O
	flying  int
	waiting []*batched
	work    sync.WaitGroup
}

// batched is a request that waits to be sent, or was sent, with others.
type batched struct {
	ctx  context.Context
	cmd  *redis.Cmd
	done chan struct{} // closed when cmd has its answer
}

const (
	// Requests, or batches of them, on their way at a time. More make small batches,
	// each with its system calls; fewer let who comes wait longer for one to land.
	maxFlying = 8
	maxBatch  = 256 // requests in a batch
)

// run does what redis.Script.Run does. The first of args are the keys.
func (b *batches) run(ctx context.Context, script *redis.Script, keys int, args ...any) *redis.Cmd {
	all := append(make([]any, 0, 3+len(args)), "evalsha", script.Hash(), keys)
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	if !b.process(ctx, cmd) {
		late := redis.NewCmd(ctx) // the other may be on its way
		late.SetErr(ctx.Err())
		return late
	}
	if cmd.Err() == nil || !redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		return cmd
	}
	names := make([]string, keys)
	for i := range names {
		names[i], _ = args[i].(string)
	}
	return script.Eval(ctx, b.client, names, args[keys:]...)
}

// process sends a command, alone or with others. It reports whether cmd has its
// answer: false when ctx ended before.
func (b *batches) process(ctx context.Context, cmd *redis.Cmd) bool {
	if b.off {
		_ = b.client.Process(ctx, cmd) // cmd has the error, too
		return true
	}
	b.mu.Lock()
	if b.flying < maxFlying {
		b.flying++
		b.mu.Unlock()
		defer b.landed()
		_ = b.client.Process(ctx, cmd)
		return true
	}
	r := &batched{ctx: ctx, cmd: cmd, done: make(chan struct{})}
	b.waiting = append(b.waiting, r)
	b.mu.Unlock()
	select {
	case <-r.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// landed makes room for those who wait.
func (b *batches) landed() {
	if batch := b.next(); batch != nil {
		b.work.Go(func() { b.depart(batch) })
	}
}

// depart sends a batch, and then those that have come meanwhile.
func (b *batches) depart(batch []*batched) {
	for ; batch != nil; batch = b.next() {
		b.fly(batch)
	}
}

// next takes the requests to send, in the room that another one leaves. If there
// are none, there is one less under way.
func (b *batches) next() []*batched {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), maxBatch)
	if n == 0 {
		b.flying--
		return nil
	}
	batch := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	return batch
}

func (b *batches) fly(batch []*batched) {
	pipe := b.client.Pipeline()
	var end time.Time
	for _, r := range batch {
		if r.ctx.Err() != nil {
			continue // nobody waits for it any more
		}
		if d, ok := r.ctx.Deadline(); ok && d.After(end) {
			end = d
		}
		_ = pipe.Process(r.ctx, r.cmd) // queued: the error is the answer's
	}
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(until{context.Background(), end}) // the same errors as in each request
	}
	for _, r := range batch {
		close(r.done)
	}
}

// close returns when no batch is under way.
func (b *batches) close() { b.work.Wait() }

// until is a context with a deadline for a driver that asks for it: no timer ends
// the context.
type until struct {
	context.Context
	end time.Time
}

// Deadline implements context.Context.
func (u until) Deadline() (time.Time, bool) { return u.end, !u.end.IsZero() }
