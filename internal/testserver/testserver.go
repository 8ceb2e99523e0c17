// Package testserver gives tests, and programs such as the load test, real servers in containers: Redis, Valkey, MySQL,
// MariaDB and ZooKeeper, and groups of servers that replicate each other. Its few other helpers need no container.
//
// The tests of a package share one container of each kind. The first test that asks for it starts it.
// TestMain removes the containers:
//
//	func TestMain(m *testing.M) { os.Exit(testserver.Wrap(m).Run()) }
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) } // and looks for leaked goroutines
//
// A test asks for an address or a data source name:
//
//	addr := testserver.Redis(t)   // host:port, shared by the package: use keys of the test's own
//	dsn := testserver.MySQL(t)    // an empty schema of the test's own, dropped when it ends
//
// If a test breaks its server, by Do, it starts a server of its own, as by Start(t, OpenMySQL). A program calls
// OpenRedis and the like. The shared servers lose all data in a crash; OpenMySQL and OpenMariaDB start durable servers.
//
// Without Docker, the test skips and names what it needs. With CI=true it fails instead, so that no test is skipped
// unnoticed. -short also skips, except with CI=true.
//
// The default images are the official ones. SHOP_TEST_REDIS_IMAGE and the like name other images, which must understand
// the variables and options of the official images; docs/contributing.md lists the variables. The value none means that
// this machine has no such image: the tests skip, even with CI=true.
//
// If a run is killed, by go test's -timeout or an interrupt, testcontainers' reaper removes its containers. If the
// reaper is switched off, remove the containers by their label org.testcontainers=true.
package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// pool holds the servers that the tests of a package share. It is a global because only TestMain spans these tests, and
// TestMain cannot pass values to them.
var pool struct {
	running bool     // within Runner.Run
	starts  sync.Map // by the name of the kind: a func() (*Server, error), which starts its server once
}

// Runner is what goleak.VerifyTestMain and os.Exit need of a *testing.M.
type Runner struct{ m *testing.M }

// Wrap returns the Runner of a package's tests.
func Wrap(m *testing.M) Runner { return Runner{m: m} }

// Run runs the tests, removes the shared containers, and returns the exit code. It is not 0 if a test failed or a
// container is left.
func (r Runner) Run() int {
	pool.running = true
	code := r.m.Run()
	for _, started := range pool.starts.Range {
		server, err := started.(func() (*Server, error))()
		if err != nil {
			continue // a test has failed with this error
		}
		if err := server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "testserver: a container is left behind:", err)
			code = max(code, 1)
		}
	}
	return code
}

// share returns the package's server of a kind. The first call starts it. A failed start fails each later test at once.
func share(t testing.TB, k kind) *Server {
	t.Helper()
	return start(t, func() (*Server, error) {
		once := sync.OnceValues(func() (*Server, error) { return k.start(context.Background()) })
		started, _ := pool.starts.LoadOrStore(k.name, once)
		return started.(func() (*Server, error))()
	})
}

// Start opens a server, or several, for this test only, by a function such as OpenRedis. They are removed when t ends.
func Start[S io.Closer](t testing.TB, open func(context.Context) (S, error)) S {
	t.Helper()
	s := start(t, func() (S, error) { return open(t.Context()) })
	t.Cleanup(func() { Must(t, s.Close()) })
	return s
}

// Reasons why no container can be started that are not the fault of a test.
var (
	errMissing = errors.New("needs a container")
	errNone    = errors.New("none says that this machine has no image of it")
)

// start opens servers. If it cannot, it skips the test or, with CI=true, fails it.
func start[S any](t testing.TB, open func() (S, error)) S {
	t.Helper()
	if !pool.running {
		t.Fatal("testserver: TestMain of this package has to use testserver.Wrap, which removes the containers")
	}
	ci := os.Getenv("CI") == "true"
	if testing.Short() && !ci {
		t.Skip("needs a container: skipped with -short")
	}
	s, err := open()
	if errors.Is(err, errNone) || errors.Is(err, errMissing) && !ci {
		t.Skip(err)
	}
	Must(t, err)
	return s
}

// Must fails the test at once if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("testserver: %v", err)
	}
}

// findImage returns the reason why no container of the kind can be started, or nil. If the image is missing, findImage
// pulls it, once; testcontainers would go on trying for a quarter of an hour.
func findImage(ctx context.Context, k kind) error {
	image := k.imageName()
	if image == "none" {
		return fmt.Errorf("%s: %s=%w", k.name, k.variable, errNone)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	docker, err := findDocker(ctx)
	if err == nil {
		defer func() { _ = docker.Close() }()
		if _, err := docker.ImageInspect(ctx, image); err == nil {
			return nil
		}
		var pulling client.ImagePullResponse
		if pulling, err = docker.ImagePull(ctx, image, client.ImagePullOptions{}); err == nil {
			err = pulling.Wait(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("%s %w: %w; see that `docker pull %s` works, or name another image in %s",
			k.name, errMissing, err, image, k.variable)
	}
	return nil
}

// silence drops testcontainers' lines of progress.
var silence = sync.OnceFunc(func() { log.SetDefault(log.NewNoopLogger()) })

// Docker returns why no container can be started, nil if a daemon answers.
func Docker(ctx context.Context) error {
	docker, err := findDocker(ctx)
	if err == nil {
		_, err = docker.Ping(ctx, client.PingOptions{})
		_ = docker.Close()
	}
	return err
}

// findDocker returns a client of the daemon that testcontainers also uses.
func findDocker(ctx context.Context) (docker *testcontainers.DockerClient, err error) {
	silence() // before the first call of testcontainers
	if docker, err = testcontainers.NewDockerClientWithOpts(ctx); err != nil {
		err = fmt.Errorf("no Docker daemon found: %w", err)
	}
	return docker, err
}

// Until polls a condition that cannot signal. It fails the test after the limit.
func Until(t testing.TB, what string, limit time.Duration, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// LogBuffer keeps the output of a program: its stderr, its log or its network traffic. Several goroutines may write to
// it at once, and a test may read it meanwhile. The zero value is ready to use.
type LogBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer. It never fails.
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns the text that was written so far.
func (b *LogBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Has reports whether the text was written.
func (b *LogBuffer) Has(text string) bool { return strings.Contains(b.String(), text) }

// NotUnderRace skips a test that takes minutes under the race detector. .ci/run runs these tests without it.
func NotUnderRace(t testing.TB) {
	t.Helper()
	info, _ := debug.ReadBuildInfo()
	if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("it takes minutes under the race detector: .ci/run has it without")
	}
}

// Poll asks until there is no error, at first every 10 ms. When ctx ends, or after startLimit, it
// returns the last error.
func Poll(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(pause*9/8, 100*time.Millisecond) {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
