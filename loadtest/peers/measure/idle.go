package measure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/loadtest/peers/peer"
)

// Idle is what a peer sends while one client holds a key, another waits for it,
// and nothing happens.
type Idle struct {
	Elapsed time.Duration
	Holder  map[string]int // commands by name
	Waiter  map[string]int
	Hung    error
}

// RunIdle watches for as long as total says.
func RunIdle(ctx context.Context, p peer.Peer, addr, key string, total time.Duration, dog Watchdog) (Idle, error) {
	clients, err := openClients(ctx, p, addr, 2)
	if err != nil {
		return Idle{}, err
	}
	idle := Idle{Elapsed: total}
	var failed error
	dog.Patience += total
	idle.Hung = dog.Watch(ctx, func(ctx context.Context, _ func()) {
		idle.Holder, idle.Waiter, failed = watchIdle(ctx, p.Name, clients, addr, key, total)
	})
	closing := closeClients(clients, dog.Grace)
	switch {
	case ctx.Err() != nil:
		return Idle{}, ctx.Err()
	case idle.Hung != nil:
		return Idle{Elapsed: total, Hung: idle.Hung}, nil //nolint:nilerr // it is a finding about the peer
	}
	return idle, errors.Join(failed, closing)
}

func watchIdle(ctx context.Context, name string, clients []peer.Client, addr, key string, total time.Duration) (holder, waiter map[string]int, err error) {
	ctx, cancel := context.WithTimeout(ctx, longRun)
	defer cancel()
	release, err := clients[0].Acquire(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	waited := make(chan error, 1)
	go func() {
		release, err := clients[1].Acquire(ctx, key)
		if err == nil {
			err = release()
		}
		waited <- err
	}()
	time.Sleep(100 * time.Millisecond) // to connect, subscribe and stand in line
	commands, err := monitor(ctx, addr, total)
	if err != nil {
		return nil, nil, err
	}
	names, err := clientNames(ctx, addr)
	if err != nil {
		return nil, nil, err
	}
	holder, waiter = make(map[string]int), make(map[string]int)
	for _, c := range commands {
		switch names[c.addr] {
		case name + "-1":
			holder[c.command]++
		case name + "-2":
			waiter[c.command]++
		}
	}
	return holder, waiter, errors.Join(release(), <-waited)
}

// clientNames returns the names of the connections, by address.
func clientNames(ctx context.Context, addr string) (map[string]string, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }()
	list, err := rdb.ClientList(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("CLIENT LIST: %w", err)
	}
	names := make(map[string]string)
	for line := range strings.Lines(list) {
		var at, name string
		for field := range strings.FieldsSeq(line) {
			switch k, v, _ := strings.Cut(field, "="); k {
			case "addr":
				at = v
			case "name":
				name = v
			}
		}
		names[at] = name
	}
	return names, nil
}
