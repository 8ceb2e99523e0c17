package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/shop/internal/logs/logbook"
	"example.com/shop/loadtest/browsertest"
	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/report"
)

// bound is far beyond what anything here takes; only what is broken meets it.
const bound = 90 * time.Second

// uiRun is the program with --ui.
type uiRun struct {
	url string
	end func() (code int) // as Ctrl-C does
}

// startUI returns when it tells its address.
func startUI(t *testing.T, args ...string) uiRun {
	t.Helper()
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
	end := sync.OnceValue(func() int {
		cancel()
		_ = reader.Close()
		wait.Wait()
		return <-ended
	})
	t.Cleanup(func() { end() })
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

// await polls the page until a condition holds.
func await(t *testing.T, ctx context.Context, condition string) { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](condition, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(bound))); err != nil {
		t.Fatalf("wait for %s: %v\n%s", condition, err, words(t, ctx, "document.body.innerText"))
	}
}

func words(t *testing.T, ctx context.Context, expression string) string { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		t.Errorf("%s: %v", expression, err)
	}
	return text
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

const saidDone = `document.getElementById("said").textContent.startsWith("Done: ")`

// From a click to the verdict, with real shops, on a phone and a desk, in light and
// dark. Nothing leaves the page's origin, and nothing is on the console.
func TestUI_race(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	browser := browsertest.Start(t)
	ui := startUI(t, "--ui", "127.0.0.1:0", "--strategies", "none,redis", "--buyers", "60", "--stock", "6", "--think", "10ms")
	heard := browsertest.Watch(t, browser, func(url string) bool { return strings.HasPrefix(url, ui.url) })
	do(t, browser, chromedp.Navigate(ui.url))
	await(t, browser, `document.querySelectorAll("#rows li").length === 2`)
	for _, sheet := range browsertest.Screens() {
		t.Run(sheet.String(), func(t *testing.T) {
			sheet.Lay(t, browser)
			sheet.Check(t, browser, "before-")
		})
	}
	do(t, browser, chromedp.Click("#run"))
	await(t, browser, saidDone)
	await(t, browser, `document.querySelectorAll("#result .strategy").length === 2`)
	said := words(t, browser, `document.getElementById("said").textContent`)
	if !regexp.MustCompile(`^Done: none oversold by \d+, redis correct\.$`).MatchString(said) {
		t.Errorf("verdict: got %q, want none oversold and redis correct", said)
	}
	result := words(t, browser, `document.getElementById("verdict").innerText + document.getElementById("result").innerText`)
	for _, want := range []string{"Promised to be correct and was: redis.", "The race, request by request", "both read", "p99", "raced at the same time"} {
		if !strings.Contains(result, want) {
			t.Errorf("result: want %q in\n%s", want, result)
		}
	}
	for _, sheet := range browsertest.Screens() {
		t.Run("result-"+sheet.String(), func(t *testing.T) {
			sheet.Lay(t, browser)
			sheet.Check(t, browser, "result-")
		})
	}
	download(t, words(t, browser, `document.getElementById("json").href`))
	for _, complaint := range heard.All() {
		t.Error(complaint)
	}
	do(t, browser, chromedp.Navigate("about:blank"))
	if code := ui.end(); code != cli.OK {
		t.Errorf("exit code: got %d, want %d", code, cli.OK)
	}
	if left, err := os.ReadDir(temp); err != nil || len(shopFolders(left)) > 0 {
		t.Errorf("left behind: got %v, %v, want nothing", left, err)
	}
}

// shopFolders are those of embedded shops; the browser has others.
func shopFolders(all []os.DirEntry) (names []string) {
	for _, entry := range all {
		if strings.HasPrefix(entry.Name(), "shop-loadtest-") {
			names = append(names, entry.Name())
		}
	}
	return names
}

func download(t *testing.T, address string) {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var r report.Report
	if err := json.NewDecoder(answer.Body).Decode(&r); err != nil || len(r.Strategies) != 2 || r.Run.Buyers != 60 {
		t.Errorf("JSON: got %+v, %v, want the report of the run", r.Run, err)
	}
}

// What cannot be is said beside its field, and the keyboard stands there.
func TestUI_bad_input(t *testing.T) {
	browser := browsertest.Start(t)
	ui := startUI(t, "--ui", "127.0.0.1:0", "--strategies", "none")
	do(t, browser, chromedp.Navigate(ui.url), chromedp.SetValue("#buyers", "0"), chromedp.Click("#run"))
	await(t, browser, `!document.getElementById("buyers-problem").hidden`)
	got := words(t, browser, `document.getElementById("buyers-problem").textContent + "; " + document.activeElement.id + "; " +
		document.getElementById("buyers").getAttribute("aria-invalid")`)
	if want := "want 1 to 100000; buyers; true"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The page says when the lab is gone, in mid-run, and finds it when it is back.
func TestUI_server_gone(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	browser := browsertest.Start(t)
	ui := startUI(t, "--ui", "127.0.0.1:0", "--strategies", "none", "--buyers", "50", "--stock", "1000", "--think", "1s")
	do(t, browser, chromedp.Navigate(ui.url))
	await(t, browser, `document.querySelectorAll("#rows li").length === 1`)
	do(t, browser, chromedp.Click("#run"))
	await(t, browser, `document.getElementById("stop").getAttribute("aria-disabled") === "false"`)
	if code := ui.end(); code != cli.OK {
		t.Errorf("exit code: got %d, want %d", code, cli.OK)
	}
	await(t, browser, `!document.getElementById("lost").hidden && document.getElementById("lost").innerText.includes("does not answer")`)
	if left, err := os.ReadDir(temp); err != nil || len(shopFolders(left)) > 0 {
		t.Errorf("left behind: got %v, %v, want nothing", left, err)
	}
	address := strings.TrimSuffix(strings.TrimPrefix(ui.url, "http://"), "/")
	startUI(t, "--ui", address)
	await(t, browser, `document.getElementById("lost").hidden`)
	do(t, browser, chromedp.Navigate("about:blank"))
}

// A scenario that is really played, by the real player, and walked to where it goes
// wrong and back.
func TestUI_step(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	browser := browsertest.Start(t)
	ui := startUI(t, "--ui", "127.0.0.1:0")
	heard := browsertest.Watch(t, browser, func(url string) bool { return strings.HasPrefix(url, ui.url) })
	do(t, browser, chromedp.Navigate(ui.url+"#steps"), chromedp.SetValue("#play-strategy", "none"), chromedp.Click("#go"))
	await(t, browser, `document.getElementById("now").textContent.startsWith("Step 1 of ")`)
	outcome := words(t, browser, `document.getElementById("play-title").textContent + ": " + document.getElementById("play-outcome").textContent`)
	if !strings.HasPrefix(outcome, "lost-update with none: ✕ ") {
		t.Errorf("got %q, want that it failed", outcome)
	}
	wrong := `document.querySelector("#events tr.wrong").getAttribute("aria-current") === "step"`
	for range 100 {
		if there := words(t, browser, "String("+wrong+")"); there == "true" {
			break
		}
		do(t, browser, chromedp.KeyEvent(kb.ArrowRight))
	}
	await(t, browser, wrong+` && document.getElementById("now").textContent.endsWith("Here it goes wrong.")`)
	believed := words(t, browser, `document.getElementById("believed").textContent`)
	if want := "At the start: 1 unit · A has read 1 unit · B has read 1 unit"; believed != want {
		t.Errorf("got %q, want %q", believed, want)
	}
	for _, sheet := range browsertest.Screens() {
		sheet.Lay(t, browser)
		sheet.Check(t, browser, "played-")
	}
	do(t, browser, chromedp.KeyEvent(kb.Home))
	await(t, browser, `document.getElementById("now").textContent.startsWith("Step 1 of ")`)
	for _, complaint := range heard.All() {
		t.Error(complaint)
	}
	do(t, browser, chromedp.Navigate("about:blank"))
	if code := ui.end(); code != cli.OK {
		t.Errorf("exit code: got %d, want %d", code, cli.OK)
	}
}

// The report of a run on containers is repeated with containers: those that it ran on
// are gone by then.
func TestUI_containers(t *testing.T) {
	t.Parallel()
	f, err := parse([]string{"--ui", "127.0.0.1:0", "--servers", "docker"}, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	f.MySQL, f.Redis = "shop:shop@tcp(127.0.0.1:3306)/shop", "127.0.0.1:6379" // as start does
	b := inBrowser{lab: lab{flags: f}}
	c := b.Usual()
	c.Strategies, c.Buyers = []string{"redis"}, 60
	if problem := b.Check(c); problem != nil {
		t.Errorf("check: got %+v, want none", problem)
	}
	want := "go run ./loadtest --strategies redis --buyers 60 --stock 100 --think 2ms --instances 3 --servers docker"
	if got := b.Blank(c).Run.Command; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Stop ends a run, and another one can begin.
func TestUI_stop(t *testing.T) {
	browser := browsertest.Start(t)
	ui := startUI(t, "--ui", "127.0.0.1:0", "--strategies", "redis", "--buyers", "200", "--stock", "1000", "--think", "1s")
	do(t, browser, chromedp.Navigate(ui.url), chromedp.Click("#run"))
	await(t, browser, `document.getElementById("stop").getAttribute("aria-disabled") === "false"`)
	do(t, browser, chromedp.Click("#stop"))
	await(t, browser, `document.getElementById("said").textContent === "Stopped: redis stopped."`)
	do(t, browser, chromedp.SetValue("#think", "0"), chromedp.SetValue("#buyers", "5"), chromedp.Click("#run"))
	await(t, browser, `document.getElementById("said").textContent === "Done: redis correct."`)
	do(t, browser, chromedp.Navigate("about:blank"))
}
