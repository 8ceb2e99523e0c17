// Package browsertest opens pages in a headless Chromium, for tests.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Tab is an open page. It collects what a page must not do.
type Tab struct {
	*testing.T
	Ctx context.Context //nolint:containedctx // that of the browser

	mu         sync.Mutex
	complaints []string
}

// Start opens a browser that ends with the test, or skips the test where none is installed. In CI there must be one. It
// hears of requests that are not allowed, of the console and of errors, see Leave.
func Start(t *testing.T, allowed func(url string) bool) *Tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no Chromium: %v; .ci/testbed/packages installs it", err)
		}
		t.Skip("no Chromium: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("force-prefers-reduced-motion", true), // a click must not miss what still moves
		chromedp.WSURLReadTimeout(time.Minute),              // a loaded machine starts slowly
	)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &Tab{T: t, Ctx: ctx}
	if err := chromedp.Listen(ctx, func(event any) { p.hear(event, allowed) }); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *Tab) hear(event any, allowed func(url string) bool) {
	var complaint string
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !allowed(e.Request.URL) {
			complaint = "request to " + e.Request.URL
		}
	case *log.EventEntryAdded:
		complaint = "log: " + e.Entry.Text
	case *runtime.EventConsoleAPICalled:
		complaint = fmt.Sprintf("console: %s", e.Type)
	case *runtime.EventExceptionThrown:
		complaint = "exception: " + e.ExceptionDetails.Text
	}
	if complaint != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.complaints = append(p.complaints, complaint)
	}
}

// Do does what a user does.
func (p *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.Ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// Await polls the page until a condition holds.
func (p *Tab) Await(condition string) {
	p.Helper()
	poll := chromedp.Poll[bool](condition, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(90*time.Second))
	if _, err := chromedp.Run(p.Ctx, poll); err != nil {
		p.Fatalf("wait for %s: %v\n%s", condition, err, p.Text("document.body.innerText"))
	}
}

// AwaitText returns when the text of an element begins with this.
func (p *Tab) AwaitText(selector, text string) {
	p.Helper()
	p.Await("document.querySelector(`" + selector + "`)?.textContent.startsWith(`" + text + "`)")
}

// Text is the value of an expression.
func (p *Tab) Text(expression string) string {
	p.Helper()
	text, err := chromedp.Run(p.Ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		p.Errorf("%s: %v", expression, err)
	}
	return text
}

// Leave closes the page and fails the test if there were complaints.
func (p *Tab) Leave() {
	p.Helper()
	p.mu.Lock()
	complaints := slices.Clone(p.complaints)
	p.mu.Unlock()
	for _, complaint := range complaints {
		p.Error(complaint)
	}
	p.Do(chromedp.Navigate("about:blank"))
}

// Sheet is what a page is read on.
type Sheet struct {
	Media, Scheme string
	Width         int64
	Background    string // that the page must have on it
}

// Screens are a phone and a desk, in light and dark.
func Screens() []Sheet {
	const light, dark = "rgb(252, 252, 251)", "rgb(20, 24, 29)"
	return []Sheet{
		{"screen", "light", 390, light}, {"screen", "light", 1440, light},
		{"screen", "dark", 390, dark}, {"screen", "dark", 1440, dark},
	}
}

// Check lays the open page on each sheet and fails if it does not fit, or if axe, which SHOP_TEST_AXE names the file of,
// finds something serious. name says what the page shows.
func (p *Tab) Check(name string, sheets ...Sheet) {
	p.Helper()
	for _, s := range sheets {
		if _, err := chromedp.Call(p.Ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: s.Media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s.Scheme}},
		}); err != nil {
			p.Fatal(err)
		}
		p.Do(chromedp.EmulateViewport(s.Width, 900))
		content, err := chromedp.Run(p.Ctx, chromedp.Evaluate[int64]("document.documentElement.scrollWidth"))
		if err != nil || content > s.Width {
			p.Errorf("%s on %+v: width of the content: got %d, %v, or it scrolls sideways", name, s, content, err)
		}
		if got := p.Text("getComputedStyle(document.body).backgroundColor"); got != s.Background {
			p.Errorf("%s on %+v: background: got %s", name, s, got)
		}
		if s.Media == "screen" {
			p.checkAccess(fmt.Sprintf("%s on %+v", name, s))
		}
	}
}

// checkAccess asks axe what keeps people from using the page: contrast, names, roles, focus.
func (p *Tab) checkAccess(what string) {
	p.Helper()
	path := os.Getenv("SHOP_TEST_AXE")
	if path == "" {
		p.Log("SHOP_TEST_AXE is not set: not checked by axe")
		return
	}
	script, err := os.ReadFile(path) //nolint:gosec // the developer's own choice
	if err != nil {
		p.Fatal(err)
	}
	p.Text(string(script) + "; axe.version")
	found, err := chromedp.Run(p.Ctx, chromedp.Evaluate[string](`axe.run({resultTypes: ["violations"]}).then(({violations}) => violations
		.filter(({impact}) => impact === "serious" || impact === "critical")
		.map(({id, nodes}) => id + ": " + nodes.map(({html, failureSummary}) => html + " " + failureSummary).join("\n")).join("\n"))`,
		chromedp.EvalAwaitPromise))
	if err != nil || found != "" {
		p.Errorf("%s: axe: %v %s", what, err, found)
	}
}
