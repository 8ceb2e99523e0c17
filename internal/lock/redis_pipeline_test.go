package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// gate is a hook of a Redis client. It holds requests back until open is closed, and counts the requests in each pipeline.
type gate struct {
	open    chan struct{}
	held    chan struct{}
	mu      sync.Mutex
	batches []int
}

func (g *gate) hold() {
	select {
	case <-g.open:
	default:
		g.held <- struct{}{}
		<-g.open
	}
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			g.hold()
		}
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "evalsha" {
			g.mu.Lock()
			g.batches = append(g.batches, len(cmds))
			g.mu.Unlock()
			g.hold()
		}
		return next(ctx, cmds)
	}
}

// "A few requests, or batches of requests, are in progress at a time, each on a connection of its own. Requests that
// come meanwhile are sent as one batch as soon as another batch is answered." Each request gets its own answer, even
// after a script flush. A request whose caller has gone is not sent.
func TestBatches(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	const most = 8
	g := &gate{open: make(chan struct{}), held: make(chan struct{})}
	client.AddHook(g)
	b := &pipeline{UniversalClient: client, most: most, work: new(sync.WaitGroup)}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	script := redis.NewScript("redis.call('SET', KEYS[1], ARGV[1]) return ARGV[1]")

	const later = 20
	var calls sync.WaitGroup
	ask := func(n int) {
		calls.Go(func() {
			want := fmt.Sprint(n)
			if got, err := script.Run(ctx, b, []string{want}, want).Text(); got != want || err != nil {
				t.Errorf("request %d: got %q, %v", n, got, err)
			}
		})
	}
	for n := range most {
		ask(n)
		select {
		case <-g.held:
		case <-ctx.Done():
			t.Fatalf("request %d is not sent while fewer than %d are under way", n, most)
		}
	}
	for n := range later {
		ask(most + n)
	}
	left, leave := context.WithCancel(ctx)
	gone := make(chan error, 1)
	go func() { gone <- script.Run(left, b, []string{"left"}, "left").Err() }()
	for b.queued() < later+1 {
		if ctx.Err() != nil {
			t.Fatalf("%d requests wait, want %d", b.queued(), later+1)
		}
		time.Sleep(time.Millisecond)
	}
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("request of a caller that gives up: got %v, want context.Canceled", err)
	}
	close(g.open) // the server does not know the script yet, and answers NOSCRIPT
	calls.Wait()
	b.work.Wait()
	if len(g.batches) != 1 || g.batches[0] != later {
		t.Errorf("got batches of %v requests, want one batch of %d", g.batches, later)
	}
	if server.Exists("left") {
		t.Error("a request that no caller waits for was sent")
	}
}

func (b *pipeline) queued() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}
