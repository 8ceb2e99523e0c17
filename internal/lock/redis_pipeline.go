package lock

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// pipeline is a redis.Scripter on one server. A few requests, or batches of requests, are under way at a time, each on a
// connection of its own. Those that come meanwhile are sent together as soon as one of these is answered; while fewer are
// under way, those that come at the same moment are. So no request waits under low load, the keys of a cart take one round
// trip, and under high load a system call carries many requests. A request that no other joins runs in its caller's
// goroutine. The client is a Scripter that does the same without this file, more slowly.
type pipeline struct {
	redis.UniversalClient

	// most is how many batches may be under way at a time. More make small batches, each with its system calls; fewer let a
	// request wait longer.
	most int

	mu        sync.Mutex // never held during I/O
	underWay  int
	gathering bool // a request is about to be sent, with those that come at the same moment
	waiting   []*pipelined
	work      *sync.WaitGroup // batches under way
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
	late := redis.NewCmd(ctx) // cmd may still be under way
	late.SetErr(ctx.Err())
	return late
}

// process sends a command, alone or with others. It reports whether cmd has its answer: false when ctx ended before.
func (p *pipeline) process(ctx context.Context, cmd *redis.Cmd) bool {
	p.mu.Lock()
	first := p.underWay < p.most && !p.gathering
	if first {
		p.underWay++
		if p.underWay > 1 { // there is some load: others may be about to ask
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

// next takes the requests to send instead of an answered one. If there is none, it counts one less under way.
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
// ended is not sent; where the client repeats a batch after a network error, it repeats all of it.
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
		_ = pipe.Process(r.ctx, r.cmd) // queued: the error is the answer's
	}
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	_, _ = pipe.Exec(ctx) // the same errors as in each request
	for _, r := range batch {
		close(r.done)
	}
}
