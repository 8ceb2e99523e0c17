package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/loadtest/cleanup"
)

// ErrNone means that this machine has neither redis-server nor Docker.
var ErrNone = errors.New("neither redis-server nor docker is on PATH")

// Image is what Start runs where nobody names another.
const Image = "redis:8"

// startLimit is how long a server may take until it answers.
const startLimit = 30 * time.Second

// Server is a Redis that runs.
type Server struct {
	Addr string // host:port
	Kind string // what it runs as, for people
	stop func() error
}

// Stop ends the server and removes what it left. Once is enough.
func (s *Server) Stop() error {
	if s.stop == nil {
		return nil
	}
	return s.stop()
}

// At is a server that somebody else runs; Stop leaves it alone.
func At(addr string) *Server { return &Server{Addr: addr, Kind: "given"} }

// Start starts one. The image is used where redis-server is not on PATH.
func Start(ctx context.Context, image string) (*Server, error) {
	var s *Server
	var err error
	if path, missing := exec.LookPath("redis-server"); missing == nil {
		s, err = startProcess(path)
	} else if path, missing := exec.LookPath("docker"); missing == nil {
		s, err = startContainer(ctx, path, image)
	} else {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	if err := s.waitReady(ctx); err != nil {
		return nil, cleanup.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		err := s.answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("redis as %s does not answer at %s: %w", s.Kind, s.Addr, err)
		}
	}
}

// answers tries a bare connection first: a refused one is nothing to log.
func (s *Server) answers(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	_ = conn.Close()
	_, err = Version(ctx, s.Addr)
	return err
}

// Version returns what the server at addr calls itself.
func Version(ctx context.Context, addr string) (string, error) {
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: time.Second, ReadTimeout: time.Second, ContextTimeoutEnabled: true,
	})
	defer func() { _ = rdb.Close() }()
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	version := ""
	for line := range strings.Lines(info) {
		switch k, v, _ := strings.Cut(strings.TrimSpace(line), ":"); k {
		case "valkey_version":
			return "Valkey " + v, nil
		case "redis_version":
			version = "Redis " + v
		}
	}
	if version == "" {
		return "", errors.New("INFO server tells no version")
	}
	return version, nil
}
