package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/shop/internal/observe/logbook"
	"example.com/shop/loadtest/browsertest"
	"example.com/shop/loadtest/result"
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
	var stderr logbook.Book
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
		if code := <-ended; code != exitOK {
			t.Errorf("exit code: got %d, want %d", code, exitOK)
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

// visitUI opens its page.
func visitUI(t *testing.T, args ...string) (uiRun, *browsertest.Tab) {
	t.Helper()
	ui := startUI(t, append([]string{"--ui", "127.0.0.1:0"}, args...)...)
	browser := browsertest.Start(t, func(url string) bool { return strings.HasPrefix(url, ui.url) })
	browser.Do(chromedp.Navigate(ui.url))
	return ui, browser
}

// From a click to the verdict, with real shops, on a phone and a desk, in light and dark. Nothing leaves the page's
// origin, and nothing is on the console.
func TestUI_race(t *testing.T) {
	_, browser := visitUI(t, "--strategies", "none,redis", "--buyers", "60", "--stock", "6", "--think", "10ms")
	browser.Await(`document.querySelectorAll("#rows li").length === 2`)
	browser.Check("before", browsertest.Screens()...)
	browser.Do(chromedp.Click("#run"))
	browser.AwaitText("#status", "Done: ")
	browser.Await(`document.querySelectorAll("#result .strategy").length === 2`)
	said := browser.Text(`document.getElementById("status").textContent`)
	if !regexp.MustCompile(`^Done: none oversold by \d+, redis correct\.$`).MatchString(said) {
		t.Errorf("verdict: got %q, want none oversold and redis correct", said)
	}
	result := browser.Text(`document.getElementById("verdict").innerText + document.getElementById("result").innerText`)
	for _, want := range []string{"As expected, redis was correct.", "The race, request by request", "both read", "p99", "raced at the same time"} {
		if !strings.Contains(result, want) {
			t.Errorf("result: want %q in\n%s", want, result)
		}
	}
	browser.Check("result", browsertest.Screens()...)
	download(t, browser.Text(`document.getElementById("json").href`))
	browser.Leave()
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
	browser.Await(`document.querySelectorAll("#rows li").length === 1`)
	browser.Do(chromedp.Click("#run"))
	browser.Await(`document.getElementById("stop").getAttribute("aria-disabled") === "false"`)
	ui.end()
	browser.Await(`!document.getElementById("lost").hidden && document.getElementById("lost").innerText.includes("does not answer")`)
	address := strings.TrimSuffix(strings.TrimPrefix(ui.url, "http://"), "/")
	startUI(t, "--ui", address)
	browser.Await(`document.getElementById("lost").hidden`)
	browser.Do(chromedp.Navigate("about:blank"))
}

// keys presses one key after the other. Each changes the address, to this schedule at last.
func (g gameTab) keys(schedule string, keys ...string) {
	g.Helper()
	for _, key := range keys {
		before := g.Text("location.hash")
		g.Do(chromedp.KeyEvent(key))
		if key != "t" && key != "x" {
			g.Await("location.hash !== `" + before + "`")
		}
	}
	if got := g.Text("location.hash"); got != "#game/"+schedule {
		g.Fatalf("after %v: got %s, want %s", keys, got, schedule)
	}
}

type gameTab struct{ *browsertest.Tab }

// By keyboard alone, with real shops: two wrong strategies oversell, a right one never does.
func TestUI_game(t *testing.T) {
	ui, browser := visitUI(t)
	g := gameTab{browser}
	g.Do(chromedp.Navigate(ui.url + "#game"))
	g.AwaitText("#game-said", "A begins")
	g.keys("none:AB", "a", "b")
	g.keys("none:A", "u")
	g.keys("none:Aba", "B", "A")
	g.AwaitText("#game-end .verdict", "Found it: 2 sold of 1, in 8 steps.")
	g.AwaitText("#game-end .shortest", "The shortest schedule that fails: none:A")
	g.AwaitText("#game-boards .board:last-child .title", "The same schedule with conditional")
	g.AwaitText("#game-boards .board:last-child .sold", "1 sold of 1")
	g.AwaitText("#tried", "You tried 1 of ")
	g.Check("found", browsertest.Screens()...)

	g.Do(chromedp.Navigate(ui.url+"#game/get-then-del:"), chromedp.Focus("#faults"), chromedp.KeyEvent(" "))
	g.Await(`document.getElementById("faults").checked && document.querySelector("#game-boards .title").textContent === "get-then-del:"`)
	g.keys("get-then-del:AAtaba", "a", "a", "t", "a", "B", "A")
	g.AwaitText("#game-end .verdict", "Found it: 2 sold of 1")

	g.Do(chromedp.Navigate(ui.url+"#game/redis:"), chromedp.Focus("#faults"), chromedp.KeyEvent(" "))
	g.Await(`!document.getElementById("faults").checked && document.querySelector("#game-boards .title").textContent === "redis:"`)
	g.keys("redis:ab", "A", "B")
	g.Do(chromedp.Focus("#explore"), chromedp.KeyEvent(kb.Enter))
	g.Await(`/^You tried 1 of \d+\. All \d+ with at most two switches: 0 oversell, 0 leave/.test(document.getElementById("tried").textContent)`)
	g.Leave()
}

// A lesson stops before the step that decides, counts the answer, and goes on. A link opens at its step.
func TestUI_lesson(t *testing.T) {
	ui, browser := visitUI(t)
	browser.Do(chromedp.Navigate(ui.url + "#lesson/none"))
	browser.Await(`document.getElementById("lesson-next").getAttribute("aria-disabled") === "false"`)
	browser.Do(chromedp.KeyEvent(kb.End))
	browser.AwaitText("#lesson-said", "Step 6.")
	browser.Await(`document.activeElement.name === "answer" && document.getElementById("lesson-end").hidden`)
	browser.Check("asked", browsertest.Screens()...)
	browser.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	browser.Await(`document.activeElement.id === "lesson-next"`)
	browser.Do(chromedp.KeyEvent(kb.End))
	browser.AwaitText("#lesson-end .verdict", "✓ You were right.")
	browser.AwaitText("#lesson-score", "1 of 1 right")
	browser.AwaitText("#lesson-boards .board:last-child .sold", "1 sold of 1")
	browser.Check("answered", browsertest.Screens()...)

	browser.Do(chromedp.Navigate(ui.url + "?lang=zh#lesson/get-then-del/7"))
	browser.Await(`document.getElementById("lesson-said").textContent.length > 9 && location.hash === "#lesson/get-then-del/7"`)
	browser.Await(`document.documentElement.lang === "zh" && document.querySelectorAll("#lesson-boards .buyer").length === 3`)
	browser.AwaitText("#lesson-title", "第 6 课，共 15 课：GET，比较，DEL")
	browser.Leave()
}

// The report of a run on containers is repeated with containers: those that it ran on are gone by then.
func TestUI_containers(t *testing.T) {
	t.Parallel()
	f := parse(t, "--ui", "127.0.0.1:0", "--servers", "docker")
	f.MySQL, f.Redis = "shop:shop@tcp(127.0.0.1:3306)/shop", "127.0.0.1:6379" // as start does
	b := &browserLab{loadTest: loadTest{raceCommand: *f}}
	c := b.Defaults()
	c.Strategies, c.Buyers = []string{"redis"}, 60
	if problem := b.Check(c); problem != nil {
		t.Errorf("check: got %+v, want none", problem)
	}
	want := "go run ./loadtest --strategies redis --buyers 60 --servers docker"
	if got := b.Report(c).Run.Command; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
