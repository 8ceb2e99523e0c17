package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/faults"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/step"
	"example.com/shop/loadtest/web"
)

// uiRun is the program with --ui.
type uiRun struct {
	url string
	end func() // as Ctrl-C does
}

// startUI returns when it tells its address. When it ends, nothing of its shops may be left behind.
func startUI(t *testing.T, args ...string) uiRun {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	var stderr testserver.LogBuffer
	ended := make(chan int, 1)
	var wait sync.WaitGroup
	wait.Go(func() {
		code := run(ctx, args, noEnv, writer, &stderr)
		_ = writer.CloseWithError(io.EOF)
		ended <- code
	})
	end := sync.OnceFunc(func() {
		cancel()
		_ = reader.Close()
		wait.Wait()
		if code := <-ended; code != app.ExitDone {
			t.Errorf("exit code: got %d, want %d", code, app.ExitDone)
		}
		if left, err := filepath.Glob(filepath.Join(temp, "shop-loadtest-*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: got %v, %v, want nothing", left, err)
		}
	})
	t.Cleanup(end)
	text := make([]byte, 1000)
	n, _ := reader.Read(text)
	found := regexp.MustCompile(`http://\S+`).Find(text[:n])
	if found == nil {
		end()
		t.Fatalf("stdout: got %q, want an address; stderr:\n%s", text[:n], stderr.String())
	}
	wait.Go(func() { _, _ = io.Copy(io.Discard, reader) })
	return uiRun{url: string(found), end: end}
}

// visitUI starts the UI, on a port that nothing else takes while the UI is down, and opens its page.
func visitUI(t *testing.T, args ...string) (uiRun, *tab) {
	t.Helper()
	ports, err := testserver.FreePorts(1)
	testserver.Must(t, err)
	ui := startUI(t, append([]string{"--ui", fmt.Sprintf("127.0.0.1:%d", ports[0])}, args...)...)
	browser := startBrowser(t, func(url string) bool { return strings.HasPrefix(strings.TrimPrefix(url, "blob:"), ui.url) })
	browser.do(chromedp.Navigate(ui.url))
	browser.await(`document.querySelectorAll("#rows li").length > 0`) // its scripts have run
	return ui, browser
}

// From a click to the verdict, with real shops, on a phone and a desk, in light and dark. Nothing leaves the page's
// origin, and nothing is on the console.
func TestUI_race(t *testing.T) {
	_, browser := visitUI(t, "--strategies", "none,redis", "--buyers", "60", "--stock", "6", "--think", "10ms")
	browser.await(`document.querySelectorAll("#rows li").length === 2`)
	browser.check("before", screens()...)
	browser.do(chromedp.Click("#run"))
	browser.awaitText("#status", "Done: ")
	browser.await(`document.querySelectorAll("#result .strategy").length === 2`)
	said := browser.text(`document.getElementById("status").textContent`)
	if !regexp.MustCompile(`^Done: none: oversold by \d+, redis: correct\.$`).MatchString(said) {
		t.Errorf("verdict: got %q, want none oversold and redis correct", said)
	}
	result := browser.text(`document.getElementById("verdict").innerText + document.getElementById("result").innerText`)
	for _, want := range []string{"As expected, redis was correct.", "The race, request by request", "both read", "p99", "raced at the same time"} {
		if !strings.Contains(result, want) {
			t.Errorf("result: want %q in\n%s", want, result)
		}
	}
	browser.check("result", screens()...)
	picture := browser.text(`new Promise((saved) => {
		const address = URL.createObjectURL;
		let last;
		URL.createObjectURL = (blob) => address.call(URL, last = blob);
		HTMLAnchorElement.prototype.click = function () { saved(this.download + " " + last.type); };
		document.querySelector("#result .save button").click();
	})`)
	if picture != "units-sold-over-time.png image/png" {
		t.Errorf("picture: got %s", picture)
	}
	download(t, browser.text(`document.getElementById("json").href`))
	browser.leave()
}

func download(t *testing.T, address string) {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var r result.Report
	if err := json.NewDecoder(answer.Body).Decode(&r); err != nil || len(r.Strategies) != 2 || r.Run.Buyers != 60 {
		t.Errorf("JSON: got %+v, %v, want the report of the run", r.Run, err)
	}
}

// The page says when the lab is gone, in mid-run, and finds it when it is back.
func TestUI_server_gone(t *testing.T) {
	ui, browser := visitUI(t, "--strategies", "none", "--buyers", "50", "--stock", "1000", "--think", "1s")
	browser.await(`document.querySelectorAll("#rows li").length === 1`)
	browser.do(chromedp.Click("#run"))
	browser.await(`document.getElementById("stop").getAttribute("aria-disabled") === "false"`)
	ui.end()
	browser.await(`!document.getElementById("lost").hidden && document.getElementById("lost").innerText.includes("does not answer")`)
	address := strings.TrimSuffix(strings.TrimPrefix(ui.url, "http://"), "/")
	startUI(t, "--ui", address)
	browser.await(`document.getElementById("lost").hidden`)
	browser.do(chromedp.Navigate("about:blank"))
}

// keys presses one key after the other. Each changes the address, to this schedule at last.
func (g gameTab) keys(schedule string, keys ...string) {
	g.Helper()
	for _, key := range keys {
		before := g.text("location.hash")
		g.do(chromedp.KeyEvent(key))
		if key != "t" && key != "x" {
			g.await("location.hash !== `" + before + "`")
		}
	}
	if got := g.text("location.hash"); got != "#game/"+schedule {
		g.Fatalf("after %v: got %s, want %s", keys, got, schedule)
	}
}

type gameTab struct{ *tab }

// free is an expression for the page: nothing keeps the lab busy.
const free = `document.getElementById("run").getAttribute("aria-disabled") === "false"`

// By keyboard alone, with real shops: two wrong strategies oversell, a right one never does.
func TestUI_game(t *testing.T) {
	ui, browser := visitUI(t)
	g := gameTab{browser}
	g.do(chromedp.Navigate(ui.url + "#game"))
	g.awaitText("#game-said", "A begins")
	g.keys("none:AB", "a", "b")
	g.keys("none:A", "u")
	g.keys("none:Aba", "B", "A")
	g.awaitText("#game-end .verdict", "Found it: 2 sold of 1, in 8 steps.")
	g.awaitText("#game-boards .board:last-child .title", "The same schedule with conditional")
	g.awaitText("#game-boards .board:last-child .sold", "1 sold of 1")
	g.awaitText("#tried", "Schedules tried: 1. Of all 5 schedules with at most two switches between buyers, 4 oversell and 0 leave a unit unsold or a buyer waiting. The shortest schedule that fails: none:A")
	g.await(`document.querySelectorAll("#game-boards .board:first-child .moves button:not([hidden])").length === 0`) // both have finished
	g.check("found", screens()...)
	// A link to a schedule stops the autoplay, and the end of that schedule stays.
	g.do(chromedp.Click("#game-play"))
	g.await(`document.getElementById("game-end").hidden`)
	g.text(`document.querySelector("#tried a").click(); ""`)
	g.await(`!document.getElementById("game-end").hidden`)
	g.awaitText("#game-end .verdict", "Found it: 2 sold of 1")
	g.await(`document.getElementById("game-play").getAttribute("aria-pressed") === "false"`)

	// A strategy comes with what its mistake needs: two units, and faults.
	g.text(`const pick = document.getElementById("game-strategy");
		pick.value = "get-then-del"; pick.dispatchEvent(new Event("change")); pick.focus(); ""`)
	g.await(`document.getElementById("faults").checked && document.querySelector("#game-boards .title").textContent === "get-then-del*2:"`)
	g.do(chromedp.KeyEvent("r"))
	g.await(`document.activeElement === document.body && document.getElementById("game-strategy").value === "get-then-del"`)
	g.keys("get-then-del*2:AAAAAAtaBBacb", "a", "a", "a", "a", "a", "a", "t", "a", "b", "b", "A", "C", "B")
	g.awaitText("#game-end .verdict", "Found it: 3 sold of 2")

	// All schedules of three buyers take a minute: they end with the choice of another strategy, or of another view.
	explored := func() {
		g.text(`document.getElementById("explore").click(); ""`)
		g.await(`document.getElementById("tried").textContent.includes("All schedules are being played: ")`)
	}
	explored()
	g.do(chromedp.Click(`nav a[href="#race"]`))
	g.await(free)
	g.do(chromedp.Click(`nav a[href="#game"]`))
	g.await(`!document.getElementById("explore").hidden`)
	explored()

	g.do(chromedp.Navigate(ui.url + "#game/redis:"))
	g.await(`!document.getElementById("faults").checked && document.querySelector("#game-boards .title").textContent === "redis:"`)
	g.await(free)
	g.keys("redis:ab", "A", "B")
	g.await(`/^Schedules tried: 1. You cannot win: all \d+ schedules with at most two switches between buyers were tried/.test(document.getElementById("tried").textContent)`)
	g.leave()
}

// noteMoves has the page keep, in moved, the classes of what moves from now on.
const noteMoves = `window.moved = []; const animate = Element.prototype.animate;
	Element.prototype.animate = function (...how) { moved.push(this.getAttribute("class")); return animate.apply(this, how); }; ""`

// A lesson stops before the step that decides, counts the answer, and goes on. A link opens at its step.
func TestUI_lesson(t *testing.T) {
	ui, browser := visitUI(t)
	browser.do(chromedp.Navigate(ui.url + "#lesson/none"))
	browser.await(`document.getElementById("lesson-next").getAttribute("aria-disabled") === "false"`)
	browser.do(chromedp.KeyEvent(kb.End))
	browser.awaitText("#lesson-said", "Step 6.")
	browser.await(`document.activeElement.name === "answer" && document.getElementById("lesson-end").hidden`)
	browser.awaitText("#lesson-boards .stock", "hidden")
	browser.check("asked", screens()...)
	for _, desk := range screens()[1:3] { // what is asked and what answers it, on one screen
		browser.do(chromedp.EmulateViewport(desk.width, desk.height))
		browser.await(`document.documentElement.scrollHeight <= innerHeight &&
			["#question [type=submit]", "#lesson-next", "#lesson .events", "#lesson .code"].every((shown) => document.querySelector(shown).getBoundingClientRect().bottom < innerHeight)`)
	}
	browser.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	browser.await(`document.activeElement.id === "lesson-next"`)
	browser.awaitText("#lesson-verdict", "✓ You were right.")
	browser.await(`[...document.querySelectorAll(".answers .reason")].map((one) => one.textContent[0]).join("") === "✕✕✓"`)
	browser.awaitText("#lesson-boards .stock", "available 0")
	browser.check("answered", screens()...)
	browser.do(chromedp.KeyEvent(kb.End))
	browser.awaitText("#lesson-score", "1 of 1 right")
	browser.awaitText("#lesson-boards .board:last-child .sold", "1 sold of 1")
	browser.await(`["wrong", "saved"].every((decides) => document.querySelector(".code ." + decides)?.textContent.includes("stock."))`)
	browser.check("over", screens()...)

	// Score, answers and place survive a reload and a change of the language.
	browser.do(chromedp.Navigate(ui.url+"?lang=zh"), chromedp.Click(`nav a[href="#lesson"]`))
	browser.awaitText("#lesson-score", "答对 1/1 题")
	browser.await(`location.hash === "#lesson/none/8" && !document.getElementById("lesson-end").hidden`)
	browser.do(chromedp.Navigate(ui.url + "?lang=en#lesson/none/8"))
	browser.awaitText("#lesson-said", "Step 8.")

	// A click on another view counts, although the lesson reaches a step before the page hears of it.
	browser.text(`document.querySelector("nav a[href='#game']").click();
		document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true })); ""`)
	browser.await(`document.getElementById("lesson-said").textContent.startsWith("No request") && document.getElementById("lesson").hidden`)
	browser.await(`location.hash.startsWith("#game/")`)
	browser.text(`location.hash = "#strategy-1"; ""`) // a place in the race
	browser.await(`document.getElementById("game").hidden && !document.getElementById("race").hidden`)

	browser.do(chromedp.Navigate(ui.url + "?lang=zh#lesson/get-then-del/7"))
	browser.await(`document.getElementById("lesson-said").textContent.length > 9 && location.hash === "#lesson/get-then-del/7"`)
	browser.await(`document.documentElement.lang === "zh" && document.querySelectorAll("#lesson-boards .buyer").length === 3`)
	browser.awaitText("#lesson-title", fmt.Sprintf("第 7/%d 课：GET、比较、DEL", len(step.Lessons())))
	browser.leave()
}

// visitSteered opens the page of a lab for 77 buyers, who want 7 units. steer replaces what the lab does; it cannot play schedules.
func visitSteered(t *testing.T, steer func(*web.Lab)) *tab {
	t.Helper()
	l := loadTest{raceCommand: *parse(t, "--strategies", "none", "--buyers", "77", "--stock", "7"), log: slog.New(slog.DiscardHandler)}
	chosen, shop, err := l.choose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	lines := make(chan string, 1)
	var serving sync.WaitGroup
	serving.Go(func() {
		lab := l.lab(chosen, shop, nil)
		steer(&lab)
		if err := web.Serve(ctx, "127.0.0.1:0", lab, func(line string) { lines <- line }); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		serving.Wait()
	})
	url := regexp.MustCompile(`http://\S+`).FindString(<-lines)
	p := startBrowser(t, func(asked string) bool { return strings.HasPrefix(asked, url) })
	p.do(chromedp.Navigate(url))
	return p
}

// The bar climbs while the race goes on, and past the line of what was supplied. Units move to it, unless the reader prefers less
// motion. All by keyboard.
func TestPage_race(t *testing.T) {
	sell := make(chan int64)
	race := func(ctx context.Context, _ web.Choice, _ shopclient.Strategy, tally *crowd.Tally) (result.Strategy, error) {
		tally.Connected.Store(77)
		for {
			select {
			case sold, more := <-sell:
				if !more {
					return result.Strategy{
						Strategy: shopclient.Strategy{Name: "none"}, Supplied: 7, Orders: 9, UnitsSold: 9,
						Judgement: result.Judgement{Oversold: 2, Verdict: result.Oversold},
					}, nil
				}
				tally.Ordered.Store(sold)
			case <-ctx.Done():
				return result.Strategy{}, context.Cause(ctx)
			}
		}
	}
	p := visitSteered(t, func(lab *web.Lab) { lab.Race, lab.Lessons = race, nil })
	over := func(want string) {
		t.Helper()
		if got := p.text(`document.querySelector("#rows .over").getAttribute("width")`); got != want {
			t.Errorf("beyond the line: got %s, want %s", got, want)
		}
	}
	p.await(`document.querySelectorAll("#rows li").length === 1`)
	p.do(chromedp.Focus("#stock"), chromedp.KeyEvent(kb.Enter))
	p.awaitText("#rows .word", "racing")
	p.text(noteMoves)
	p.media("screen", "light", "no-preference")
	sell <- 5
	p.awaitText("#rows .units", "5 sold of 7")
	over("0.00%")
	p.media("screen", "light", "reduce")
	sell <- 8
	p.awaitText("#rows .word", "over by 1")
	over("12.30%") // one unit, on a scale that has room beyond the seven
	if got := p.text("moved.join()"); got != "unit,unit,unit,unit,unit" {
		t.Errorf("moved: got %s, want the first five units", got)
	}
	close(sell)
	p.awaitText("#status", "Done: none: oversold by 2.")
	p.awaitText("#verdict .outcome .word", "✕ oversold by 2")

	link := p.text(`document.getElementById("link").hash`)
	if !strings.Contains(link, "strategies=none&buyers=77&stock=7") {
		t.Errorf("link: got %s, want the choice in it", link)
	}
	p.text("location.hash = `" + strings.Replace(link, "none&buyers=77", "redis&buyers=12", 1) + "`")
	p.await(`document.getElementById("buyers").value === "12" && document.querySelector("input[name=strategies]:checked").value === "redis"`)
	p.leave()
}

// Each view, and what comes of a failover, fits all screens in both languages, and axe finds nothing serious.
func TestUI_views(t *testing.T) {
	ui, p := visitUI(t)
	for _, language := range []string{"en", "zh"} {
		for _, view := range []string{"race", "lesson", "game", "failover"} {
			p.do(chromedp.Navigate(ui.url + "?lang=" + language + "#" + view))
			p.await(`document.querySelector("#` + view + `[aria-busy]") === null && document.querySelector("` + ready[view] + `") !== null`)
			p.check(view+" in "+language, screens()...)
		}
	}
	p.leave()
}

// ready selects what a view has once it can be used.
var ready = map[string]string{"race": "#rows li", "lesson": "#lesson .code [data-at]", "game": "#game .code [data-at]", "failover": "#failover:not([hidden])"}

func TestUI_failover(t *testing.T) {
	receipt := faults.Receipt{Order: "01890a5d-ac96-774b-bcce-b302099a8057", Units: "1 hot, 2 cold"}
	kept := receipt
	kept.Row = kept.Units
	p := visitSteered(t, func(lab *web.Lab) {
		lab.Record = func(context.Context, step.Lesson) (step.Recording, error) { return step.Recording{}, nil }
		lab.CanKillPrimary = func(context.Context) error { return nil }
		lab.KillPrimary = func(context.Context, uint64, func(string)) ([]faults.Failover, error) {
			return []faults.Failover{
				{Servers: faults.GroupOfThree, Sold: 439, Gap: 7 * time.Second, Receipts: []faults.Receipt{kept, kept}},
				{Servers: "asynchronous replica", Sold: 467, Lost: 56, Gap: time.Second, Receipts: []faults.Receipt{kept, receipt}},
			}, nil
		}
	})
	for _, language := range []string{"en", "zh"} {
		p.do(chromedp.Navigate(p.text("location.origin") + "?lang=" + language + "#failover"))
		p.await(`document.querySelector("#failover .kill").getAttribute("aria-disabled") === "false"`)
		p.do(chromedp.Focus("#failover .kill"), chromedp.KeyEvent(kb.Enter))
		p.await(`[...document.querySelectorAll("#failover article .bad")].map((one) => one.textContent)[0] === "56"`)
		p.check("failover in "+language, screens()...)
	}
	p.leave()
}

// "The report needs nothing but itself", and fits a phone, a screen and paper.
func TestReport_in_Chromium(t *testing.T) {
	var page bytes.Buffer
	if err := web.WriteReport(&page, loadReport(t, "web/testdata/report.json"), "en"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, page.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	file := "file://" + path
	p := startBrowser(t, func(url string) bool { return url == file })
	p.do(chromedp.Navigate(file))
	paper := sheet{media: "print", scheme: "dark", width: 700, height: 900, background: "rgb(255, 255, 255)"} // A4 between its margins
	p.check("report", append(screens(), paper)...)
	p.leave()
}

// The report of a run on containers is repeated with containers: those that it ran on are gone by then.
func TestUI_containers(t *testing.T) {
	t.Parallel()
	f := parse(t, "--ui", "127.0.0.1:0", "--servers", "docker")
	f.MySQL, f.Redis = "shop:shop@tcp(127.0.0.1:3306)/shop", "127.0.0.1:6379" // as start does
	lab := loadTest{raceCommand: *f}.lab(nil, shopclient.Lab{}, nil)
	c := lab.Defaults
	c.Strategies, c.Buyers = []string{"redis"}, 60
	if _, err := lab.Check(c); err != nil {
		t.Errorf("check: got %v, want none", err)
	}
	want := "go run ./loadtest --strategies redis --buyers 60 --servers docker"
	if got := lab.Report(c).Run.Command; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
