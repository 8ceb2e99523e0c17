package orderhttp

import (
	"context"
	"net/http"
	"net/http/pprof"
	runtime "runtime/pprof"
	"time"

	"github.com/gin-gonic/gin"
)

// maxProfile ends a profile that was asked to take longer: it is answered as far
// as it got.
const maxProfile = 5 * time.Minute

// profile answers what `go tool pprof` asks for, below /debug/pprof/. The command
// line is not told: it may hold the database's password. A profile moves the write
// deadline of its own connection as far as it needs.
func (o *operator) profile(c *gin.Context) {
	name := c.Param("profile")
	answer := map[string]http.HandlerFunc{"": pprof.Index, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace}[name]
	if answer == nil {
		if runtime.Lookup(name) == nil {
			o.fail(c, errNoRoute)
			return
		}
		answer = pprof.Handler(name).ServeHTTP
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), maxProfile)
	defer cancel()
	answer(c.Writer, c.Request.WithContext(ctx))
}
