package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"example.com/shop/loadtest/cleanup"
)

// startContainer runs the image with Docker's own program, which is all that is
// needed of it here.
func startContainer(ctx context.Context, docker, image string) (*Server, error) {
	name := "peers-redis-" + strings.ToLower(rand.Text())
	s := &Server{Kind: "a container of " + image, stop: func() error { //nolint:contextcheck // see below
		// Also when ctx has ended, and if it ended while the container was made.
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		_, err := run(ctx, docker, "rm", "--force", "--volumes", name)
		return err
	}}
	_, err := run(ctx, docker, "run", "--detach", "--rm", "--name", name, "--publish", "127.0.0.1::6379", image,
		"redis-server", "--save", "", "--appendonly", "no")
	if err != nil {
		_ = s.Stop() // there may be none
		return nil, err
	}
	ports, err := run(ctx, docker, "port", name, "6379/tcp")
	if err != nil {
		return nil, cleanup.Join(err, s.Stop())
	}
	s.Addr, _, _ = strings.Cut(ports, "\n")
	return s, nil
}

func run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // from Start alone
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
		}
		return "", fmt.Errorf("docker %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
