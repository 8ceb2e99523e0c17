package web

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/shop/loadtest/browsertest"
	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/result"
)

// played is a short play that goes wrong at its second event.
func played(context.Context, string, string) (any, error) {
	return json.RawMessage(`{"scenario": "lost-update", "strategy": "none", "stock": 1, "wrong": 1, "events": [
		{"at_ns": 0, "actor": "A", "kind": "http", "text": "POST /v1/orders"},
		{"at_ns": 1000000, "actor": "B", "kind": "sql", "text": "SELECT available", "answer": "available 1"}],
		"outcome": "Sold 2 units of 1.", "why": "Both read that one unit is left.", "remedy": "redis lets B wait."}`), nil
}

// visit opens the page.
func visit(t *testing.T, lab Lab) *browsertest.Tab {
	t.Helper()
	s := open(t, lab)
	web := httptest.NewServer(guard("", s.routes()))
	t.Cleanup(func() {
		web.CloseClientConnections() // the events of the page do not end by themselves
		web.Close()
	})
	p := browsertest.Start(t, func(url string) bool { return strings.HasPrefix(url, web.URL) })
	p.Do(chromedp.Navigate(web.URL))
	return p
}

// The bar climbs while the race goes on, and past the line of what was supplied. All by keyboard.
func TestPage_race(t *testing.T) {
	sell := make(chan int64)
	p := visit(t, fakeLab{race: func(ctx context.Context, strategy string, watch crowd.Watcher) (result.Strategy, error) {
		tally := new(crowd.Tally)
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
				return result.Strategy{}, context.Cause(ctx)
			}
		}
	}})
	over := func(want string) {
		t.Helper()
		if got := p.Text(`document.querySelector("#rows .over").getAttribute("width")`); got != want {
			t.Errorf("beyond the line: got %s, want %s", got, want)
		}
	}
	p.Do(chromedp.Focus("#stock"), chromedp.KeyEvent(kb.Enter))
	p.AwaitText("#rows .word", "racing")
	sell <- 5
	p.AwaitText("#rows .units", "5 sold of 7")
	over("0.00%")
	sell <- 8
	p.AwaitText("#rows .word", "over by 1")
	over("12.30%") // one unit, on a scale that has room beyond the seven
	close(sell)
	p.AwaitText("#status", "Done: none oversold by 2.")
	p.AwaitText("#verdict .outcome .word", "✕ oversold by 2")
	p.Leave()
}

// Every control has an accessible name.
func TestPage_names(t *testing.T) {
	p := visit(t, fakeLab{play: played})
	for _, view := range []string{"#race", "#steps"} {
		p.Do(chromedp.Click(`nav a[href="` + view + `"]`))
		if view == "#steps" {
			p.Do(chromedp.Click("#go"))
			p.AwaitText("#now", "Step 1")
		}
		tree, err := chromedp.Call(p.Ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, node := range tree.Nodes {
			role := textOf(node.Role)
			if !slices.Contains([]string{"button", "checkbox", "combobox", "radio", "slider", "spinbutton", "link"}, role) {
				continue
			}
			seen++
			if textOf(node.Name) == "" {
				t.Errorf("%s: a %s without a name", view, role)
			}
		}
		if seen < 8 {
			t.Errorf("%s: got %d controls, want those of the form at least", view, seen)
		}
	}
	p.Leave()
}

func textOf(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	return strings.Trim(string(v.Value), `"`)
}
