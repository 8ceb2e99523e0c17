package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// pool holds the servers that the tests of this package share. It is a global because nothing but TestMain spans these
// tests, and TestMain cannot hand them anything.
var pool struct {
	mu     sync.Mutex
	byName map[string]*shared // nil outside of Runner.Run
}

// shared is a server that is started at most once. A failure is kept, so that each test fails with it at once.
type shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Runner is what goleak.VerifyTestMain and os.Exit need of a *testing.M.
type Runner struct{ m interface{ Run() int } }

// Main runs the tests and removes the containers that they shared. It returns the exit code.
func Main(m *testing.M) int { return Wrap(m).Run() }

// Wrap is Main for goleak.VerifyTestMain, which calls Run itself and looks for leaks after it.
func Wrap(m *testing.M) Runner { return Runner{m: m} }

// Run runs the tests, then removes the containers. The code is not 0 if a test failed or a container is left.
func (r Runner) Run() int {
	pool.byName = map[string]*shared{}
	code := r.m.Run()
	var failed []error
	for _, s := range pool.byName {
		if s.server != nil {
			failed = append(failed, s.server.Close())
		}
	}
	if err := errors.Join(failed...); err != nil {
		fmt.Fprintln(os.Stderr, "testserver: containers are left behind:", err)
		return max(code, 1)
	}
	return code
}

// silent drops testcontainers' progress lines.
type silent struct{}

func (silent) Printf(string, ...any) {}

// share returns the package's server of a kind. The first call starts it.
func share(t testing.TB, k kind) *Server {
	t.Helper()
	need(t, k)
	pool.mu.Lock()
	entry := pool.byName[k.name]
	if entry == nil {
		entry = &shared{}
		pool.byName[k.name] = entry
	}
	pool.mu.Unlock()
	entry.once.Do(func() {
		if entry.server, entry.err = start(context.Background(), k); entry.err == nil {
			t.Logf("testserver: %s", entry.server)
		}
	})
	if entry.err != nil {
		t.Fatalf("testserver: %v", entry.err)
	}
	return entry.server
}

// own starts a server that is removed when t ends.
func own(t testing.TB, k kind) *Server {
	t.Helper()
	need(t, k)
	s, err := start(t.Context(), k)
	if err != nil {
		t.Fatalf("testserver: %v", err)
	}
	s.ownedBy(t)
	return s
}

func (s *Server) ownedBy(t testing.TB) {
	t.Helper()
	testcontainers.CleanupContainer(t, s.container, testcontainers.StopTimeout(0))
	t.Logf("testserver: %s", s)
}

// need skips the test, or fails it with CI=true, where Docker or the image is missing.
func need(t testing.TB, k kind) {
	t.Helper()
	if pool.byName == nil {
		t.Fatal("testserver: TestMain of this package has to call testserver.Main or Wrap, which remove the containers")
	}
	ci := os.Getenv("CI") == "true"
	if testing.Short() && !ci {
		t.Skipf("needs %s in a container: skipped with -short", k.name)
	}
	image := k.imageName()
	if image == "none" {
		t.Skipf("needs %s: %s=none says that this machine has no image of it", k.name, k.variable)
	}
	if err := findImage(context.Background(), image); err != nil {
		if ci {
			t.Fatalf("needs Docker for %s, and CI=true makes that a failure: %v", k.name, err)
		}
		t.Skipf("needs Docker for %s (see that `docker pull %s` works, or name an image in %s): %v",
			k.name, image, k.variable, err)
	}
}

var (
	imagesMu sync.Mutex
	images   = map[string]error{}
)

// findImage returns why no container of the image can be started, nil if it can. Docker is asked once for each image.
func findImage(ctx context.Context, image string) error {
	imagesMu.Lock()
	defer imagesMu.Unlock()
	if err, known := images[image]; known {
		return err
	}
	if len(images) == 0 { // before testcontainers does anything
		log.SetDefault(silent{})
	}
	images[image] = withDocker(ctx, 10*time.Minute, func(ctx context.Context, docker client.APIClient) error {
		if _, err := docker.ImageInspect(ctx, image); err == nil {
			return nil
		}
		// Once, where testcontainers would go on trying for a quarter of an hour.
		pull, err := docker.ImagePull(ctx, image, client.ImagePullOptions{})
		if err != nil {
			return fmt.Errorf("pull %s: %w", image, err)
		}
		return pull.Wait(ctx)
	})
	return images[image]
}

// withDocker calls f with a client of the daemon that testcontainers uses, too.
func withDocker(ctx context.Context, limit time.Duration, f func(context.Context, client.APIClient) error) (err error) {
	// Looking for the daemon's address panics in some environments, instead of failing.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("looking for Docker: %v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return fmt.Errorf("no Docker daemon found: %w", err)
	}
	defer func() { _ = docker.Close() }()
	return f(ctx, docker)
}
