package orderhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/gin-gonic/gin"
)

// recoverPanics answers a panic with a problem that tells nothing, and logs it.
func (a *api) recoverPanics(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		// net/http's way to cut a connection without a word.
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		}
		err := fmt.Errorf("panic: %v", p)
		if c.Writer.Written() {
			a.Log.ErrorContext(c.Request.Context(), "request failed after its answer began", "method", c.Request.Method,
				"path", c.Request.URL.Path, "error", err, "stack", string(debug.Stack()))
			panic(http.ErrAbortHandler)
		}
		a.fail(c, fmt.Errorf("%w\n%s", err, debug.Stack()))
	}()
	c.Next()
}

// limitTime ends what a request waits for, so that its answer still gets out
// before the server's write timeout.
func (a *api) limitTime(c *gin.Context) {
	if a.Timeout <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), a.Timeout)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// plainHeaders keeps answers out of caches: stock and orders change.
func plainHeaders(c *gin.Context) {
	c.Header("Cache-Control", "no-store")
	c.Header("X-Content-Type-Options", "nosniff")
}
