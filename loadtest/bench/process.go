package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/shirou/gopsutil/v4/process"

	"example.com/shop/loadtest/shops"
)

// startAll starts the shops of a fleet for a strategy or, without a fleet, the handlers that do nothing.
func (r *run) startAll(ctx context.Context, f *fleet, strategy string) (all []*shops.Process, err error) {
	for range instances {
		p, err := r.startOne(ctx, f, strategy, instances)
		if err != nil {
			return nil, err
		}
		r.Later(p.Stop)
		all = append(all, p)
	}
	return all, nil
}

// startOne starts one of n processes that share the machine.
func (r *run) startOne(ctx context.Context, f *fleet, strategy string, n int) (*shops.Process, error) {
	if f != nil {
		return f.Start(ctx, n, f.variables, append([]string{
			"--strategy=" + strategy, "--log-level=warn", "--reconcile-at=off", "--drain=5s", "--pay-within=24h", "--max-in-flight=20000",
			"--lock-wait=90s", "--rate-limit=100000", fmt.Sprint("--max-open-orders=", maxOpen),
		}, r.ShopFlag...)...)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return shops.Start(ctx, n, self, nil, "bench", "--nothing")
}

// cpu returns the processor time that processes have used since their start, or 0 if the system does not report it.
func cpu(pids ...int) (sum time.Duration) {
	for _, pid := range pids {
		p := process.Process{Pid: int32(pid)}
		if times, err := p.Times(); err == nil {
			sum += time.Duration((times.User + times.System) * float64(time.Second))
		}
	}
	return sum
}

// peak returns the process's maximum of resident bytes since forgetPeak or the start. It is 0 on systems other than Linux.
func peak(pid int) (bytes int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "VmHWM: %d kB", &bytes)
	}
	return bytes << 10
}

// forgetPeak resets the maximum, and returns the bytes that are resident now.
func forgetPeak(pid int) (now int64, ok bool) {
	err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
	return peak(pid), err == nil
}

// anOrder has the length of a shop's answer.
const anOrder = `{"id":"01930000-0000-7000-8000-000000000000","buyer":"buyer-1","status":"pending",` +
	`"lines":[{"sku":"bench-20060102-150405-1","quantity":1,"price":{"minor":100,"currency":"EUR"}}],"total":{"minor":100,"currency":"EUR"},` +
	`"created_at":"2026-01-01T00:00:00.123456Z","expires_at":"2026-01-02T00:00:00.123456Z"}`

// serveNothing answers every request with 201 and the same body. The cost of gin and net/http is the ceiling for a shop.
func serveNothing(ctx context.Context, stdout io.Writer) error {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET("/healthz", func(c *gin.Context) { c.Status(http.StatusOK) })
	answer := func(c *gin.Context) {
		_, _ = io.Copy(io.Discard, c.Request.Body)
		c.Data(http.StatusCreated, "application/json; charset=utf-8", []byte(anOrder))
	}
	engine.POST("/v1/orders", answer)
	engine.POST("/v1/orders/:id/:end", answer)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: engine, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Fprintf(stdout, "The shop is open at http://%s\nThe operator's API is at http://%[1]s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
