package web

import (
	"context"
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
	"example.com/shop/loadtest/step"
)

// played is a position of a schedule of two steps, both of which read.
func played(_ context.Context, name string, loose bool) (step.Position, error) {
	strategy, letters, _ := strings.Cut(name, ":")
	now := step.Position{
		Schedule: name, Acts: strings.Split(letters, ""), Strategy: strategy, Units: 1, Wrong: -1, Next: []string{"A", "B", "xa"}, Events: []step.Event{},
		Buyers: []step.Buyer{{Name: "A", State: step.Ready, Next: "sql COMMIT", Line: "internal/order/strategy/none.go:18"}, {Name: "B", State: step.Ready}},
		Over:   loose || len(letters) > 1,
	}
	for i, actor := range now.Acts {
		now.Events = append(now.Events, step.Event{Actor: actor, Act: i, Kind: step.Step, Text: "read", Answer: "1 unit"})
	}
	return now, nil
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

	link := p.Text(`document.getElementById("link").hash`)
	if !strings.Contains(link, "strategies=none&buyers=77&stock=7") {
		t.Errorf("link: got %s, want the choice in it", link)
	}
	p.Text("location.hash = `" + strings.Replace(link, "none&buyers=77", "redis&buyers=12", 1) + "`")
	p.Await(`document.getElementById("buyers").value === "12" && document.querySelector("input[name=strategies]:checked").value === "redis"`)
	p.Leave()
}

// Every control has an accessible name.
func TestPage_names(t *testing.T) {
	p := visit(t, fakeLab{play: played})
	for _, view := range []string{"#race", "#lesson", "#game"} {
		p.Do(chromedp.Click(`nav a[href="` + view + `"]`))
		if view != "#race" {
			p.Await(`document.querySelector("` + view + ` .code mark")?.textContent.startsWith("  18 ")`)
		}
		if view == "#lesson" {
			p.Do(chromedp.KeyEvent(kb.ArrowRight))
			p.AwaitText("#question legend", "Who gets it?")
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

// The language follows the address, and the place in the page stays.
func TestPage_language(t *testing.T) {
	p := visit(t, fakeLab{play: played})
	p.Do(chromedp.Click(`nav a[href="#game"]`), chromedp.WaitReady(`html[lang="en"] #game:not([hidden])`))
	p.Do(chromedp.Click(`.languages a[lang="zh"]`), chromedp.WaitReady(`html[lang="zh"] #game:not([hidden])`))
	p.AwaitText("h1", "竞态实验室")
	p.Do(chromedp.Click(`.languages a[lang="en"]`), chromedp.WaitReady(`html[lang="en"] #game:not([hidden])`))
	p.AwaitText("h1", "Race lab")
	p.Leave()
}

func textOf(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	return strings.Trim(string(v.Value), `"`)
}
