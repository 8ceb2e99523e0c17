package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// ending is how long open requests have when the lab ends.
const ending = 10 * time.Second

// Serve shows the lab at an address until ctx ends, which also ends a run. It tells
// where, before anything can be asked. When it returns, nothing of it runs any more.
func Serve(ctx context.Context, address string, lab Lab, tell func(line string)) error {
	address, err := listenOn(address)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	name, _, _ := net.SplitHostPort(address)
	s := newServer(lab)
	routes, err := s.routes()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	tell(fmt.Sprintf("The race lab is at http://%s/ until Ctrl-C.", listener.Addr()))
	if !private(listener.Addr()) {
		tell("Whoever reaches this address can start races on this machine.")
	}
	group, ctx := errgroup.WithContext(ctx)
	web := &http.Server{
		Handler:           guard(name, routes),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	group.Go(func() error {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		s.work(ctx)
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
		defer cancel()
		if web.Shutdown(closing) == nil {
			return nil
		}
		return web.Close() // somebody neither reads nor writes
	})
	return group.Wait()
}
