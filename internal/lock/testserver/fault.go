package testserver

import (
	"context"
	"testing"
	"time"

	"github.com/moby/moby/client"
)

// Pause freezes the server: connections stay open and nobody answers.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.fault(t, "pause", func(ctx context.Context, docker client.APIClient) error {
		_, err := docker.ContainerPause(ctx, s.container.GetContainerID(), client.ContainerPauseOptions{})
		return err
	})
}

// Unpause lets a paused server go on.
func (s *Server) Unpause(t testing.TB) {
	t.Helper()
	s.fault(t, "unpause", func(ctx context.Context, docker client.APIClient) error {
		_, err := docker.ContainerUnpause(ctx, s.container.GetContainerID(), client.ContainerUnpauseOptions{})
		return err
	})
}

// Kill ends the server as a crash would, by SIGKILL.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.fault(t, "kill", func(ctx context.Context, docker client.APIClient) error {
		_, err := docker.ContainerKill(ctx, s.container.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
		return err
	})
}

// Restart starts a killed server again, at the same address, and returns when it answers.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for try := 1; ; try++ {
		err := s.container.Start(ctx)
		if err == nil {
			return
		}
		if try == restartTries || !portTaken(err) {
			t.Fatalf("testserver: restart %s: %v", s, err)
		}
		time.Sleep(time.Second) // somebody may only have looked whether the port is free
	}
}

func (s *Server) fault(t testing.TB, what string, f func(context.Context, client.APIClient) error) {
	t.Helper()
	if err := withDocker(faultLimit, f); err != nil {
		t.Fatalf("testserver: %s %s: %v", what, s, err)
	}
}
