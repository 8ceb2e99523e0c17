package lock

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// pipeline is a redis.Scripter on one server. A few requests, or batches of requests, are in progress at a time, each
// on a connection of its own. Requests that come meanwhile are sent as one batch as soon as another batch is answered.
// If fewer are in progress, requests that come at the same moment are sent as one batch. So no request waits under low
// load, the keys of a cart take one round trip, and under high load a system call carries many requests. A request that
// no other joins runs in its caller's goroutine. The client itself is also a Scripter, without batches and slower.
type pipeline struct {
	redis.UniversalClient

	// most is the number of batches that may be in progress at a time. If it is higher, batches are smaller and cost more
	// system calls; if it is lower, requests wait longer.
	most int

	mu        sync.Mutex // never held during I/O
	underWay  int
	gathering bool // a request is about to be sent, with others that come at the same moment
	waiting   []*pipelined
	work      *sync.WaitGroup // batches in progress
}

// pipelined is a request that waits to be sent with others.
type pipelined struct {
	ctx  context.Context
	cmd  *redis.Cmd
	done chan struct{} // closed when cmd has its answer
}

// EvalSha implements redis.Scripter. Script.Run calls it.
func (p *pipeline) EvalSha(ctx context.Context, hash string, keys []string, args ...any) *redis.Cmd {
	all := append(make([]any, 0, 3+len(keys)+len(args)), "evalsha", hash, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	if p.process(ctx, cmd) {
		return cmd
	}
	late := redis.NewCmd(ctx) // cmd may still be in progress
	late.SetErr(ctx.Err())
	return late
}

// process sends a command, alone or with others. It reports whether cmd has its answer; if not, ctx has ended.
func (p *pipeline) process(ctx context.Context, cmd *redis.Cmd) bool {
	p.mu.Lock()
	first := p.underWay < p.most && !p.gathering
	if first {
		p.underWay++
		if p.underWay > 1 { // under load, other requests may be about to come
			p.gathering = true
			p.mu.Unlock()
			runtime.Gosched()
			p.mu.Lock()
			p.gathering = false
		}
		if len(p.waiting) == 0 {
			p.mu.Unlock()
			defer p.answered()
			_ = p.Process(ctx, cmd) // cmd also has the error
			return true
		}
	}
	r := &pipelined{ctx: ctx, cmd: cmd, done: make(chan struct{})}
	p.waiting = append(p.waiting, r)
	p.mu.Unlock()
	if first {
		p.answered()
	}
	select {
	case <-r.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// answered sends the requests that have come meanwhile.
func (p *pipeline) answered() {
	if batch := p.next(); batch != nil {
		p.work.Go(func() {
			for ; batch != nil; batch = p.next() {
				p.exchange(batch)
			}
		})
	}
}

// next takes the waiting requests, to send in place of an answered batch. Without any, one fewer is in progress.
func (p *pipeline) next() []*pipelined {
	p.mu.Lock()
	defer p.mu.Unlock()
	batch := p.waiting
	p.waiting = nil
	if batch == nil {
		p.underWay--
	}
	return batch
}

// exchange sends a batch, and waits for its answers until the latest deadline of its requests. A request whose ctx has
// ended is not sent. If the client repeats a batch after a network error, it repeats the whole batch.
func (p *pipeline) exchange(batch []*pipelined) {
	pipe := p.Pipeline()
	var end time.Time
	for _, r := range batch {
		if err := r.ctx.Err(); err != nil {
			r.cmd.SetErr(err)
			continue
		}
		if d, _ := r.ctx.Deadline(); d.After(end) { // each has one: see Backend
			end = d
		}
		_ = pipe.Process(r.ctx, r.cmd) // queued: the answer has the error
	}
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	_, _ = pipe.Exec(ctx) // each request has its error
	for _, r := range batch {
		close(r.done)
	}
}
