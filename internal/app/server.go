package app

import (
	"log/slog"
	"net/http"
	"time"
)

// Limits of a connection. Whoever sends slowly must not hold it for ever; idle
// ones outlive the keep-alive of a load balancer, which would otherwise send a
// request into a connection that is being closed.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 15 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
)

// requestTimeout leaves an order its wait for the lease and then some for the
// database.
func requestTimeout(s Settings) time.Duration { return s.LockWait + 20*time.Second }

// operatorTimeout leaves an audit of a large shop its time. A MySQL ends it before if
// one statement takes longer than the DSN's readTimeout, two minutes without one.
const operatorTimeout = 5 * time.Minute

func newServer(handler http.Handler, timeout time.Duration, s Settings) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      bodyTimeout + timeout + 5*time.Second,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log().Handler(), slog.LevelWarn),
	}
}
