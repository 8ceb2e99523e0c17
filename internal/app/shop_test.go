package app_test

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/testserver"
)

// A database that falls silent makes the shop unready, as does a database that hangs up. The log says so. The shop is
// ready again when the database answers.
func TestShop_databaseAway(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"gone", "silent"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			var away atomic.Bool
			back := make(chan struct{})
			comeBack := sync.OnceFunc(func() { away.Store(false); close(back) })
			judge := func(string) testserver.Fate {
				if !away.Load() {
					return testserver.Pass
				}
				if how == "silent" {
					<-back
					return testserver.Pass
				}
				return testserver.Drop
			}
			log := &testserver.LogBuffer{}
			s := embedded(t, 1)
			s.Data = ""
			s.MySQL, _ = testserver.Judged(t, testserver.MariaDB(t), judge)
			t.Cleanup(comeBack)
			s.Log = slog.New(slog.NewTextHandler(log, nil))
			supply(t, s, 1)
			shop := start(t, s)
			untilReady(t, shop)
			away.Store(true)
			testserver.Until(t, "it names the database, and nothing else", 30*time.Second, func() bool {
				began := time.Now()
				w := call(t, http.MethodGet, shop.URL()+"/readyz", "")
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("the answer took %v, want about 2s at most", took)
				}
				return w.Status == http.StatusServiceUnavailable && strings.Contains(w.Body, `"failing":["database"]`)
			})
			comeBack()
			untilReady(t, shop)
			began := strings.Count(log.String(), `the server cannot take orders, so the shop is not ready" server=database errors=1 `)
			ended := strings.Count(log.String(), `the server cannot take orders, so the shop is not ready: over" server=database `)
			if began < 1 || began != ended { // a busy machine may add one, and its end
				t.Errorf("outages began %d times and ended %d times:\n%s", began, ended, log)
			}
		})
	}
}
