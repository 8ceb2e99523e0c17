package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/loadtest/child"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
)

const (
	stopTimeout = 15 * time.Second // of a shop

	patientTTL = 5 * time.Second        // of locks, which so run out only where the schedule says so
	quickTTL   = 400 * time.Millisecond // of locks, in a schedule that is about time
	nobody     = -1

	// childVariable makes this program an instance of the shop, with these settings.
	childVariable = "LOADTEST_STEP_SHOP"

	// childReady begins the line by which it says where it serves.
	childReady = "open at "
)

// instances are one of the shop for each buyer, on the same stores. One schedule at a time is played there.
type instances struct {
	clients   []*shopclient.Client
	oneWriter bool // the database is a SQLite file
	ttl       time.Duration
	kill      func() error // kills the process of a buyer; nil where all are in this process
	closers   []func(ctx context.Context) error
}

// openInstances starts them in this process, but for the one of a buyer that is to be killed.
func openInstances(ctx context.Context, from shops.Instances, k kind, killed int) (*instances, error) {
	settings, undo, err := from.Prepare(ctx)
	if err != nil {
		return nil, err
	}
	s := &instances{oneWriter: settings.MySQL == "", ttl: patientTTL}
	if k.quick {
		s.ttl = quickTTL
	}
	settings.ReconcileAt, settings.SweepEvery = "off", time.Minute
	settings.LockTTL, settings.LabShortTTL, settings.LockWait = s.ttl, s.ttl, time.Minute
	conns := shopclient.NewConnections(maxBuyers, answerTimeout)
	s.closers = append(s.closers, func(context.Context) error { conns.CloseIdleConnections(); return undo() })
	for i := range k.buyers {
		url, err := s.start(ctx, settings, i == killed)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start instance %d: %w", i+1, err), s.close(context.WithoutCancel(ctx)))
		}
		s.clients = append(s.clients, shopclient.New(url, conns))
	}
	return s, nil
}

// start starts an instance, and returns where it serves.
func (s *instances) start(ctx context.Context, settings app.Settings, asProcess bool) (url string, err error) {
	if asProcess {
		process, err := startChild(ctx, settings)
		if err != nil {
			return "", err
		}
		s.closers = append(s.closers, func(context.Context) error { return process.Stop() })
		s.kill = process.Kill
		return process.Addr, nil
	}
	shop, err := app.Start(ctx, settings)
	if err != nil {
		return "", err
	}
	s.closers = append(s.closers, shop.Shutdown)
	return shop.URL(), nil
}

// close ends them and removes what was started for them, the last first.
func (s *instances) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i](ctx))
	}
	return errors.Join(errs...)
}

// startChild starts this program once more, as an instance.
func startChild(ctx context.Context, settings app.Settings) (*child.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	settings.Log = nil
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self) //nolint:gosec // itself
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	return child.Start(ctx, cmd, childReady)
}

// Child runs an instance of the shop if this process was started as one, and reports whether it was. It ends with
// SIGTERM, or with stdin: when the process that started it is gone.
func Child(getenv func(string) string, stdin io.Reader, stdout io.Writer) (was bool, err error) {
	text := getenv(childVariable)
	if text == "" {
		return false, nil
	}
	var settings app.Settings
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		return true, fmt.Errorf("read settings: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	shop, err := app.Start(ctx, settings)
	if err != nil {
		return true, err
	}
	fmt.Fprintln(stdout, childReady+shop.URL())
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		stop()
	}()
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return true, shop.Shutdown(ctx)
}
