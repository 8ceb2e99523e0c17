package testserver

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// need skips the test, or fails it with CI=true, where Docker or the image is missing.
func need(t testing.TB, k kind) {
	t.Helper()
	ci := os.Getenv("CI") == "true"
	if testing.Short() && !ci {
		t.Skipf("needs %s in a container: skipped with -short", k.name)
	}
	image := k.imageName()
	if image == "none" {
		t.Skipf("needs %s: %s=none says that this machine has no image of it", k.name, k.variable)
	}
	missing := dockerProblem()
	hint := "install Docker and see that `docker info` works"
	if missing == nil {
		missing = imageProblem(image)
		hint = fmt.Sprintf("run `docker pull %s`, or name an image in %s", image, k.variable)
	}
	if missing == nil {
		return
	}
	if ci {
		t.Fatalf("needs Docker for %s, and CI=true makes that a failure: %v", k.name, missing)
	}
	t.Skipf("needs Docker for %s (%s): %v", k.name, hint, missing)
}

func (k kind) imageName() string {
	if image := os.Getenv(k.variable); image != "" {
		return image
	}
	return k.image
}

// dockerProblem returns why no Docker daemon can be used, nil if one can. Asked once: a machine without Docker would
// pay for the answer in each test.
var dockerProblem = sync.OnceValue(func() (err error) {
	// Looking for the daemon's address panics in some environments, instead of failing.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("looking for Docker: %v", r)
		}
	}()
	return withDocker(20*time.Second, func(ctx context.Context, docker client.APIClient) error {
		_, err := docker.Ping(ctx, client.PingOptions{})
		return err
	})
})

var (
	imagesMu sync.Mutex
	images   = map[string]error{}
)

// imageProblem returns why the image can neither be found nor pulled, nil if it is there. Asked once for each image.
func imageProblem(image string) error {
	imagesMu.Lock()
	defer imagesMu.Unlock()
	if err, known := images[image]; known {
		return err
	}
	err := withDocker(10*time.Minute, func(ctx context.Context, docker client.APIClient) error {
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
	images[image] = err
	return err
}

// withDocker calls f with a client of the daemon that testcontainers uses, too.
func withDocker(limit time.Duration, f func(context.Context, client.APIClient) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return fmt.Errorf("no Docker daemon found: %w", err)
	}
	defer func() { _ = docker.Close() }()
	return f(ctx, docker)
}
