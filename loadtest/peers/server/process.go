package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"example.com/shop/loadtest/cleanup"
)

// startProcess runs the program on a free port of the loopback, in a folder of
// its own.
func startProcess(path string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "peers-redis-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", //nolint:noctx,gosec // stop ends it; the path is LookPath's
		"--dir", dir, "--save", "", "--appendonly", "no")
	if err := cmd.Start(); err != nil {
		return nil, cleanup.Join(err, os.RemoveAll(dir))
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	return &Server{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Kind: "a process of " + path,
		stop: func() error { return errors.Join(endProcess(cmd.Process, ended), os.RemoveAll(dir)) },
	}, nil
}

// endProcess asks first. A process that has ended already, as Ctrl-C ends a whole
// group, is as good.
func endProcess(p *os.Process, ended <-chan struct{}) error {
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-ended:
		return nil
	case <-time.After(5 * time.Second):
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop redis-server, pid %d: %w", p.Pid, err)
	}
	<-ended
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns at once
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
