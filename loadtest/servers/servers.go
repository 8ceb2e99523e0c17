package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"example.com/shop/loadtest/cleanup"
)

// starting is how long a server may take, without the pull of its image.
const starting = 2 * time.Minute

// redlockNodes is how many servers Redlock is usually described with.
const redlockNodes = 5

// Servers are running containers.
type Servers struct {
	MySQL     string // DSN
	Redis     string // host:port, as the others
	Redlock   []string
	ZooKeeper string

	containers []testcontainers.Container
}

// Start starts all of them at the same time, and returns when they answer, or none
// is left. Its progress goes to tell, line by line.
func Start(ctx context.Context, tell func(line string)) (*Servers, error) {
	log.SetDefault(silent{})
	if err := findDocker(ctx); err != nil {
		return nil, fmt.Errorf("no Docker: %w; install it and see that `docker info` works", err)
	}
	kinds := []kind{mysqlKind(), zookeeperKind()}
	for range 1 + redlockNodes {
		kinds = append(kinds, redisKind())
	}
	tell(fmt.Sprintf("starting %d containers: %s, %s, and %d of %s",
		len(kinds), mysqlKind().imageName(), zookeeperKind().imageName(), 1+redlockNodes, redisKind().imageName()))

	began := time.Now()
	all := make([]running, len(kinds))
	errs := make([]error, len(kinds))
	var wait sync.WaitGroup
	var telling sync.Mutex
	for i, k := range kinds {
		wait.Go(func() {
			all[i], errs[i] = start(ctx, k)
			if errs[i] == nil {
				telling.Lock()
				defer telling.Unlock()
				tell(fmt.Sprintf("%s answers after %.1f s", k.name, time.Since(began).Seconds()))
			}
		})
	}
	wait.Wait()
	s := &Servers{}
	for _, r := range all {
		if r.container != nil {
			s.containers = append(s.containers, r.container)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, cleanup.Join(err, s.Close())
	}
	s.MySQL, s.ZooKeeper, s.Redis = dsn(all[0].addr), all[1].addr, all[2].addr
	for _, r := range all[3:] {
		s.Redlock = append(s.Redlock, r.addr)
	}
	return s, nil
}

// Close removes them all.
func (s *Servers) Close() error {
	errs := make([]error, len(s.containers))
	var wait sync.WaitGroup
	for i, c := range slices.All(s.containers) {
		wait.Go(func() { errs[i] = testcontainers.TerminateContainer(c) })
	}
	wait.Wait()
	s.containers = nil
	return errors.Join(errs...)
}

// findDocker asks whether there is one: looking for its address panics in some
// environments, instead of failing.
func findDocker(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("looking for it: %v", r)
		}
	}()
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return err
	}
	return docker.Close()
}
