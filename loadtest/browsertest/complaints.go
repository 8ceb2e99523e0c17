package browsertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Complaints collects what a page must not do.
type Complaints struct {
	mu  sync.Mutex
	all []string
}

// All returns what was heard so far.
func (c *Complaints) All() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

func (c *Complaints) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

// Watch hears of requests that are not allowed, of the console and of errors.
func Watch(t *testing.T, ctx context.Context, allowed func(url string) bool) *Complaints { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	c := &Complaints{}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if !allowed(e.Request.URL) {
				c.add("request to %s", e.Request.URL)
			}
		case *log.EventEntryAdded:
			c.add("log: %s", e.Entry.Text)
		case *runtime.EventConsoleAPICalled:
			c.add("console: %s", e.Type)
		case *runtime.EventExceptionThrown:
			c.add("exception: %s", e.ExceptionDetails.Text)
		}
	})
	if err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return c
}
