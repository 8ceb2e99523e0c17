package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is an open page in a headless Chromium. It collects what a page must not do.
type tab struct {
	*testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// startBrowser opens a browser that ends with the test, or skips the test where none is installed. In CI there must be
// one. The tab hears of requests that are not allowed, of the console and of errors, see leave.
func startBrowser(t *testing.T, allowed func(url string) bool) *tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no Chromium: %v; .ci/testbed/packages installs it", err)
		}
		t.Skip("no Chromium: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
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
	p := &tab{T: t, ctx: ctx}
	if err := chromedp.Listen(ctx, func(event any) { p.hear(event, allowed) }); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *tab) hear(event any, allowed func(url string) bool) {
	var complaint string
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !allowed(e.Request.URL) {
			complaint = "request to " + e.Request.URL
		}
	case *log.EventEntryAdded:
		complaint = "log: " + e.Entry.Text + " " + e.Entry.URL
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

// do does what a user does.
func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 90*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.fail(err)
	}
}

// fail ends the test, with what the page shows and what it has done wrong.
func (p *tab) fail(err error) {
	p.Helper()
	shown := p.text("location + document.body.innerText")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Fatalf("%v\n%s\n%s", err, strings.Join(p.complaints, "\n"), shown)
}

// await polls the page until a condition holds.
func (p *tab) await(condition string) {
	p.Helper()
	poll := chromedp.Poll[bool](condition, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(90*time.Second))
	_, err := chromedp.Run(p.ctx, poll)
	for err != nil && strings.Contains(err.Error(), "Cannot find context") { // a navigation has replaced the page meanwhile
		_, err = chromedp.Run(p.ctx, poll)
	}
	if err != nil {
		p.fail(fmt.Errorf("wait for %s: %w", condition, err))
	}
}

// awaitText returns when the text of an element begins with this.
func (p *tab) awaitText(selector, text string) {
	p.Helper()
	p.await("document.querySelector(`" + selector + "`)?.textContent.startsWith(`" + text + "`)")
}

// text is the value of an expression, or what its promise comes to.
func (p *tab) text(expression string) string {
	p.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Errorf("%s: %v", expression, err)
	}
	return text
}

// leave closes the page and fails the test if there were complaints.
func (p *tab) leave() {
	p.Helper()
	p.mu.Lock()
	complaints := slices.Clone(p.complaints)
	p.mu.Unlock()
	for _, complaint := range complaints {
		p.Error(complaint)
	}
	p.do(chromedp.Navigate("about:blank"))
}

// sheet is what a page is read on.
type sheet struct {
	media, scheme string
	width, height int64
	background    string // that the page must have on it
}

// screens are a phone and two desks, in light and dark.
func screens() []sheet {
	const light, dark = "rgb(252, 252, 251)", "rgb(20, 24, 29)"
	return []sheet{
		{"screen", "light", 390, 844, light}, {"screen", "light", 1024, 768, light}, {"screen", "light", 1440, 900, light},
		{"screen", "dark", 390, 844, dark}, {"screen", "dark", 1440, 900, dark},
	}
}

// check lays the open page on each sheet and fails if it does not fit, or if axe, which SHOP_TEST_AXE names the file
// of, finds something serious. name says what the page shows.
func (p *tab) check(name string, sheets ...sheet) {
	p.Helper()
	for _, s := range sheets {
		p.media(s.media, s.scheme, "reduce")
		p.do(chromedp.EmulateViewport(s.width, s.height))
		content, err := chromedp.Run(p.ctx, chromedp.Evaluate[int64]("document.documentElement.scrollWidth"))
		if err != nil || content > s.width {
			p.Errorf("%s on %+v: width of the content: got %d, %v, or it scrolls sideways", name, s, content, err)
		}
		if got := p.text("getComputedStyle(document.body).backgroundColor"); got != s.background {
			p.Errorf("%s on %+v: background: got %s", name, s, got)
		}
		if s.media == "screen" {
			p.checkAccess(fmt.Sprintf("%s on %+v", name, s))
		}
	}
}

// media sets what the page is shown on, and what its reader prefers.
func (p *tab) media(media, scheme, motion string) {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Media: media, Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
		}}); err != nil {
		p.Fatal(err)
	}
}

// checkAccess asks axe what keeps people from using the page: contrast, names, roles, focus.
func (p *tab) checkAccess(what string) {
	p.Helper()
	path := os.Getenv("SHOP_TEST_AXE")
	if path == "" {
		p.Log("SHOP_TEST_AXE is not set: not checked by axe")
		return
	}
	script, err := os.ReadFile(path)
	if err != nil {
		p.Fatal(err)
	}
	p.text(string(script) + "; axe.version")
	found, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`axe.run({resultTypes: ["violations"]}).then(({violations}) => violations
		.filter(({impact}) => impact === "serious" || impact === "critical")
		.map(({id, nodes}) => id + ": " + nodes.map(({html, failureSummary}) => html + " " + failureSummary).join("\n")).join("\n"))`,
		chromedp.EvalAwaitPromise))
	if err != nil || found != "" {
		p.Errorf("%s: axe: %v %s", what, err, found)
	}
}
