package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/loadtest/cli"
)

// nothing is the name of the handler that does nothing, and the command that this
// program runs itself with to serve it in a process of its own.
const nothing = "nothing"

// openAt begins the line by which it says where it serves.
const openAt = "open at "

// serveNothing answers each order with 201 and a body of so many bytes, as many
// as a shop's answer has. It is what gin and net/http cost, and so the ceiling
// for what a shop can do.
func serveNothing(ctx context.Context, bodySize string, stdout io.Writer) error {
	size, err := strconv.Atoi(bodySize)
	if err != nil || size < 0 || size > 1<<20 {
		return fmt.Errorf("%w: nothing %q: want the size of its answers in bytes", cli.ErrUsage, bodySize)
	}
	body := bytes.Repeat([]byte{' '}, size)
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET("/healthz", func(c *gin.Context) { c.Status(http.StatusOK) })
	engine.POST("/v1/orders", func(c *gin.Context) {
		if _, err := io.Copy(io.Discard, c.Request.Body); err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		c.Data(http.StatusCreated, "application/json; charset=utf-8", body)
	})
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: engine, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Fprintf(stdout, "%s%s\n", openAt, listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
