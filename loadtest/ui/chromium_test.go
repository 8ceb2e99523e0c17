package ui

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/shop/loadtest/browsertest"
	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/steps"
)

// played is a short play that goes wrong at its fifth event.
func played(_ context.Context, strategy, scenario string) (steps.Play, error) {
	event := func(ms int, actor, kind, text, answer string) steps.Event {
		return steps.Event{At: time.Duration(ms) * time.Millisecond, Actor: actor, Kind: kind, Text: text, Answer: answer}
	}
	return steps.Play{
		Scenario: scenario, Title: "A stops between reading and writing", Strategy: strategy, Expected: true,
		Outcome: "Sold 2 units of 1: one buyer waits for an order that cannot be delivered.", Stock: 1, Sold: 2, Wrong: 4,
		Events: []steps.Event{
			event(0, steps.A, steps.HTTP, "POST /v1/orders", ""),
			event(1, steps.A, steps.SQL, "SELECT available FROM stock WHERE sku = 'lab-1'", "available 1"),
			event(2, steps.A, steps.Schedule, "is stopped before it writes", ""),
			event(3, steps.Lab, steps.Schedule, "lets B order the same unit", ""),
			event(5, steps.B, steps.SQL, "UPDATE stock SET available = 0 WHERE sku = 'lab-1'", "1 row"),
			event(120, steps.B, steps.HTTP, "POST /v1/orders", "201 Created"),
			event(121, steps.A, steps.HTTP, "POST /v1/orders", "201 Created <b>"),
		},
		Why: "Both read that one unit is left.", Remedy: "redis lets B wait until A has written.",
	}, nil
}

// tab is an open page of a lab.
type tab struct {
	*testing.T
	ctx   context.Context
	heard *browsertest.Complaints
}

// visit opens the page. When the test ends, nothing may have left its origin, and
// nothing may be on the console.
func visit(t *testing.T, lab Lab) tab {
	t.Helper()
	ctx := browsertest.Start(t)
	s := open(t, lab)
	routes, err := s.routes()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(guard("", routes))
	t.Cleanup(func() {
		web.CloseClientConnections() // the events of the page do not end by themselves
		web.Close()
	})
	heard := browsertest.Watch(t, ctx, func(url string) bool { return strings.HasPrefix(url, web.URL) })
	p := tab{t, ctx, heard}
	p.do(chromedp.Navigate(web.URL))
	return p
}

func (p tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// await returns when the text of an element begins with this.
func (p tab) await(selector, text string) {
	p.Helper()
	condition := "document.querySelector(`" + selector + "`)?.textContent.startsWith(`" + text + "`)"
	poll := chromedp.Poll[bool](condition, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(bound))
	if _, err := chromedp.Run(p.ctx, poll); err != nil {
		all, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		p.Fatalf("%s: want %q in\n%s", selector, text, all)
	}
}

// leave fails if there were complaints.
func (p tab) leave() {
	p.Helper()
	p.do(chromedp.Navigate("about:blank"))
	for _, complaint := range p.heard.All() {
		if !strings.Contains(complaint, "about:blank") {
			p.Error(complaint)
		}
	}
}

// A play is walked forward and back: by buttons, keys and the slider.
func TestPage_steps(t *testing.T) {
	p := visit(t, fakeLab{play: played})
	if got, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("getComputedStyle(document.documentElement).scrollBehavior")); got != "auto" {
		t.Errorf("who asked for less motion: got scrolling %q, %v, want auto", got, err)
	}
	p.do(chromedp.Click(`nav a[href="#steps"]`), chromedp.SetValue("#play-strategy", "none"),
		chromedp.Click("input[value=lost-update]"), chromedp.Click("#go"))
	p.await("#now", "Step 1 of 7: A: POST /v1/orders.")
	p.do(chromedp.Click("#next"))
	p.await("#now", "Step 2 of 7: A: SELECT available FROM stock WHERE sku = 'lab-1' → available 1.")
	p.do(chromedp.Focus("#play"), chromedp.KeyEvent(kb.ArrowRight+kb.ArrowRight+kb.ArrowRight))
	p.await("#now", "Step 5 of 7: B: UPDATE stock SET available = 0 WHERE sku = 'lab-1' → 1 row. Here it goes wrong.")
	for _, sheet := range browsertest.Screens() {
		sheet.Lay(t, p.ctx)
		sheet.Check(t, p.ctx, "steps-")
	}
	p.do(chromedp.KeyEvent(kb.ArrowLeft))
	p.await("#now", "Step 4 of 7: the lab: lets B order the same unit.")
	p.do(chromedp.Focus("#at"), chromedp.KeyEvent(kb.End))
	p.await("#now", "Step 7 of 7: A: POST /v1/orders → 201 Created <b>.")
	p.do(chromedp.Focus("#next"), chromedp.KeyEvent(kb.Enter))
	p.await("#now", "Step 7 of 7")
	p.leave()
}

// The bar climbs while the race goes on, and past the line of what was supplied. All
// by keyboard.
func TestPage_race(t *testing.T) {
	sell := make(chan int64)
	p := visit(t, fakeLab{race: func(ctx context.Context, strategy string, watch Watcher) (report.Strategy, error) {
		tally := new(buyers.Tally)
		watch.Connecting(tally)
		watch.Ready(ctx)
		for {
			select {
			case sold, more := <-sell:
				if !more {
					return oversells(ctx, strategy, watch)
				}
				tally.Ordered.Store(sold)
			case <-ctx.Done():
				return report.Strategy{}, context.Cause(ctx)
			}
		}
	}})
	p.do(chromedp.Focus("#stock"), chromedp.KeyEvent(kb.Enter))
	p.await("#rows .word", "racing")
	sell <- 5
	p.await("#rows .units", "5 sold of 7")
	p.over("0.00%")
	sell <- 8
	p.await("#rows .word", "over by 1")
	p.over("12.30%") // one unit, on a scale that has room beyond the seven
	close(sell)
	p.await("#said", "Done: none oversold by 2.")
	p.await("#verdict .outcome .word", "✕ oversold by 2")
	p.leave()
}

// over fails unless the red part of the first bar is so wide.
func (p tab) over(want string) {
	p.Helper()
	got, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.querySelector("#rows .over").getAttribute("width")`))
	if err != nil || got != want {
		p.Errorf("beyond the line: got %s, %v, want %s", got, err, want)
	}
}

// Whatever can be operated has a name for who does not see it.
func TestPage_names(t *testing.T) {
	p := visit(t, fakeLab{play: played})
	for _, view := range []string{"#race", "#steps"} {
		p.do(chromedp.Click(`nav a[href="` + view + `"]`))
		if view == "#steps" {
			p.do(chromedp.Click("#go"))
			p.await("#now", "Step 1")
		}
		tree, err := chromedp.Call(p.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, node := range tree.Nodes {
			role := said(node.Role)
			if !slices.Contains([]string{"button", "checkbox", "combobox", "radio", "slider", "spinbutton", "link"}, role) {
				continue
			}
			seen++
			if said(node.Name) == "" {
				t.Errorf("%s: a %s without a name", view, role)
			}
		}
		if seen < 8 {
			t.Errorf("%s: got %d controls, want those of the form at least", view, seen)
		}
	}
	p.leave()
}

func said(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	return strings.Trim(string(v.Value), `"`)
}
