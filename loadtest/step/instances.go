package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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

	// childVariable makes this program an instance of the shop, with these settings.
	childVariable = "LOADTEST_STEP_SHOP"

	// childReady begins the line by which it says where it serves.
	childReady = "open at "
)

// pair is two instances of a shop on the same stores. One play at a time uses it.
type pair struct {
	pace     pace
	settings app.Settings // of both
	conns    *http.Client
	first    *child.Process // nil after it was killed, until it is needed again
	second   *app.Shop
	undo     func() error // closes their stores
}

// openPair starts both.
func openPair(ctx context.Context, from shops.Instances, want pace) (*pair, error) {
	settings, undo, err := from.Prepare(ctx)
	if err != nil {
		return nil, err
	}
	// A process that is paused while a job writes keeps SQLite's file locked.
	settings.ReconcileAt, settings.SweepEvery = "off", time.Minute
	settings.LockTTL, settings.LabShortTTL, settings.LockWait = want.ttl, want.ttl, want.wait
	p := &pair{pace: want, settings: settings, conns: shopclient.NewConnections(4, answerTimeout), undo: undo}
	if p.second, err = app.Start(ctx, settings); err != nil {
		err = fmt.Errorf("start instance 2: %w", err)
	} else {
		err = p.revive(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.close(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// revive starts instance 1 again after it was killed.
func (p *pair) revive(ctx context.Context) (err error) {
	if p.first == nil {
		p.first, err = startFirst(ctx, p.settings)
	}
	return err
}

// shop returns a client of the instance that a buyer uses.
func (p *pair) shop(actor string) *shopclient.Client {
	if actor == A {
		return shopclient.New(p.first.Addr, p.conns)
	}
	return shopclient.New(p.second.URL(), p.conns)
}

// kill ends instance 1 without a warning.
func (p *pair) kill() error {
	if p.first == nil {
		return nil
	}
	err := p.first.Kill()
	p.first = nil
	return err
}

// close ends both and removes what was started for them.
func (p *pair) close(ctx context.Context) error {
	var errs []error
	if p.first != nil {
		_ = continueProcess(p.first.Process) // it may be paused
		errs = append(errs, p.first.Stop())
	}
	if p.second != nil {
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		errs = append(errs, p.second.Shutdown(ctx))
	}
	p.conns.CloseIdleConnections()
	return errors.Join(append(errs, p.undo())...)
}

// startFirst starts this program once more, as instance 1.
func startFirst(ctx context.Context, settings app.Settings) (*child.Process, error) {
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
	cmd.SysProcAttr = ownGroup()
	first, err := child.Start(ctx, cmd, childReady)
	if err != nil {
		return nil, fmt.Errorf("start instance 1: %w", err)
	}
	return first, nil
}

// Child runs an instance of the shop if this process was started as one, and reports whether it was. It ends with
// SIGTERM, or with stdin: when the process of the Player is gone.
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
