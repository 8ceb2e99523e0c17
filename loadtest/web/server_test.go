package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/faults"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/step"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bound is far beyond what anything here takes.
const bound = time.Minute

// newLab returns a lab that races the shops of somebody else. All its races oversell, unless change alters it.
func newLab(change ...func(*Lab)) Lab {
	lab := Lab{
		Strategies: []shopclient.Strategy{
			{Name: "redis", Designed: true, Lesson: "A <lease>.", Available: true},
			{Name: "zookeeper", Designed: true, Lesson: "A node.", Reason: "it needs a ZooKeeper"},
			{Name: "none", Lesson: "Read, think, write.", Available: true},
		},
		Defaults: Choice{Strategies: []string{"none", "zookeeper"}, Buyers: 77, Stock: 7, Instances: 3, ThinkMS: 2.5},
		Check: func(c Choice) (Choice, error) {
			if c.Buyers == 0 {
				return c, &InputError{Field: "buyers", Text: "want 1 to 100000"}
			}
			c.Together = c.Together && c.Buyers < 70
			return c, nil
		},
		Report: func(c Choice) result.Report {
			return result.Report{Run: result.Run{Buyers: int64(c.Buyers), Stock: c.Stock}, NotRun: []result.NotRun{}}
		},
		Race:    oversells,
		Unraced: func(string) (why, instead string) { return "", "" },
	}
	for _, c := range change {
		c(&lab)
	}
	return lab
}

// ownShops gives a lab what only shops of its own have.
func ownShops(lab *Lab) {
	lab.Lessons = []step.Lesson{{
		Name: "none", Title: "No <lock>", Schedule: "none:AB", Ask: 1, Question: "Who gets it?",
		Options: []step.Option{{Text: "A"}, {Text: "both"}}, Right: 1,
		Why: "Both have read 1.", Remedy: "redis", Fix: "B waits.",
	}}
}

// oversells is a race that sells 9 units of 7.
func oversells(_ context.Context, _ Choice, how shopclient.Strategy, tally *crowd.Tally) (result.Strategy, error) {
	tally.Ordered.Store(9)
	return result.Strategy{
		Strategy: how, Supplied: 7, Orders: 9, UnitsSold: 9,
		Judgement: result.Judgement{Oversold: 2, Verdict: result.Oversold},
	}, nil
}

// open serves a lab without a listener of its own until the test ends.
func open(t *testing.T, lab Lab) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := newServer(ctx, lab)
	t.Cleanup(func() {
		cancel()
		s.work.Wait()
	})
	return s
}

// ask returns the status and body of one request, from this machine.
func (s *server) ask(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	return s.send(t, httptest.NewRequest(method, "http://127.0.0.1:8090"+path, strings.NewReader(body)))
}

func (s *server) send(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	if r.Method == http.MethodPost && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	guard("lab.example", s.routes()).ServeHTTP(w, r)
	text, _ := io.ReadAll(w.Result().Body)
	return w.Code, strings.TrimSpace(string(text))
}

// finish returns the state when the run is over.
func (s *server) finish(t *testing.T) state {
	t.Helper()
	deadline := time.Now().Add(bound)
	for s.last.Load().state("").Phase == running {
		if time.Now().After(deadline) {
			t.Fatalf("the run goes on: %+v", s.last.Load().state(""))
		}
		time.Sleep(time.Millisecond)
	}
	return s.last.Load().state("")
}

const choice = `{"strategies":["none","redis"],"buyers":60,"stock":7,"together":true}`

func TestServer_bad_input(t *testing.T) {
	t.Parallel()
	s := open(t, newLab())
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{"outside of the flags' limits", `{"strategies":["none"],"buyers":0}`, 422, `{"field":"buyers","text":"want 1 to 100000"}`},
		{"half a buyer", `{"strategies":["none"],"buyers":1.5}`, 422, `{"field":"buyers","text":"want a whole number"}`},
		{"no strategy", `{"strategies":[],"buyers":5}`, 422, `{"field":"strategies","text":"choose at least one"}`},
		{"an unknown strategy", `{"strategies":["all"],"buyers":5}`, 422, `"\"all\" is not one of redis, zookeeper, none"`},
		{"one that lacks a server", `{"strategies":["zookeeper"],"buyers":5}`, 422, `"zookeeper cannot be run: it needs a ZooKeeper"`},
		{"an unknown field", `{"buyer":5}`, 400, `unknown field`},
		{"no JSON", `buyers=5`, 400, `want JSON`},
		{"too long", `{"strategies":["` + strings.Repeat("x", bodyLimit) + `"]}`, 400, `too large`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if status, body := s.ask(t, http.MethodPost, "/run", tt.body); status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("got %d %s, want %d and %s", status, body, tt.status, tt.want)
			}
		})
	}
}

// "a second run is refused (409)".
func TestServer_one_run_at_a_time(t *testing.T) {
	t.Parallel()
	s := open(t, newLab(func(lab *Lab) {
		lab.Race = func(ctx context.Context, _ Choice, _ shopclient.Strategy, _ *crowd.Tally) (result.Strategy, error) {
			<-ctx.Done()
			return result.Strategy{}, context.Cause(ctx)
		}
	}))
	if status, body := s.ask(t, http.MethodPost, "/run", choice); status != http.StatusAccepted || body != `{"run":1}` {
		t.Fatalf("first: got %d %s, want 202", status, body)
	}
	if status, body := s.ask(t, http.MethodPost, "/run", choice); status != http.StatusConflict || !strings.Contains(body, "busy") {
		t.Errorf("second: got %d %s, want 409", status, body)
	}
	if status, _ := s.ask(t, http.MethodGet, "/runs/1/report.json", ""); status != http.StatusNotFound {
		t.Errorf("report of a run that goes on: got %d, want 404", status)
	}
	if status, body := s.ask(t, http.MethodPost, "/stop", ""); status != http.StatusNoContent {
		t.Errorf("stop: got %d %s, want 204", status, body)
	}
	if got, want := s.finish(t).Status, "Stopped: none: stopped, redis: stopped."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if status, body := s.ask(t, http.MethodPost, "/run", choice); status != http.StatusAccepted || body != `{"run":2}` {
		t.Errorf("after the stop: got %d %s, want 202", status, body)
	}
}

// Races that do not fit together are held one after the other, and the page says so.
func TestServer_does_not_fit(t *testing.T) {
	t.Parallel()
	first := make(chan struct{})
	s := open(t, newLab(func(lab *Lab) {
		lab.Race = func(ctx context.Context, c Choice, how shopclient.Strategy, tally *crowd.Tally) (result.Strategy, error) {
			if how.Name == "none" {
				<-first
			}
			return oversells(ctx, c, how, tally)
		}
	}))
	s.ask(t, http.MethodPost, "/run", `{"strategies":["none","redis"],"buyers":70,"stock":7,"together":true}`)
	now := s.last.Load().state("")
	if now.Races[1].Phase != waiting || !strings.Contains(now.Status, "One race after the other: together they need more open files") {
		t.Errorf("got %+v, want the second race to wait, and why", now)
	}
	close(first)
	s.finish(t)
}

// The result is a part of the report's page; the files are the report.
func TestServer_report(t *testing.T) {
	t.Parallel()
	s := open(t, newLab())
	s.ask(t, http.MethodPost, "/run", choice)
	got := s.finish(t)
	if got.Status != "Done: none: oversold by 2, redis: oversold by 2." || !got.Result || got.Races[0].Orders != 9 {
		t.Errorf("state: got %+v, want both oversold", got)
	}
	for path, want := range map[string]string{
		"/runs/1/result":         `<section aria-labelledby="verdicts">`,
		"/runs/1/result?lang=zh": "超卖 2 件",
		"/runs/1/report.html":    "<!DOCTYPE html>",
		"/runs/1/report.json":    `"oversold": 2`,
		"/runs/1/report.csv":     "none,false,oversold,7,9,9,0,2,0,",
		"/static/zh.json":        `"Race lab": "竞态实验室"`,
	} {
		if status, body := s.ask(t, http.MethodGet, path, ""); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %.100s, want %s", path, status, body, want)
		}
	}
	for _, path := range []string{"/runs/2/result", "/runs/1/report.pdf", "/static/nothing.js", "/static/", "/static", "/nothing"} {
		if status, _ := s.ask(t, http.MethodGet, path, ""); status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, status)
		}
	}
}

// A race that fails says why, and the others go on.
func TestServer_failed_race(t *testing.T) {
	t.Parallel()
	s := open(t, newLab(func(lab *Lab) {
		lab.Race = func(ctx context.Context, c Choice, how shopclient.Strategy, tally *crowd.Tally) (result.Strategy, error) {
			if how.Name == "none" {
				return result.Strategy{}, errors.New("no disk")
			}
			return oversells(ctx, c, how, tally)
		}
	}))
	s.ask(t, http.MethodPost, "/run", choice)
	got := s.finish(t)
	if got.Status != "Failed: none: failed, redis: oversold by 2." || got.Races[0].Failure != "no disk" {
		t.Errorf("got %+v, want the failure of one and the result of the other", got)
	}
	if _, body := s.ask(t, http.MethodGet, "/runs/1/report.json", ""); !strings.Contains(body, `"reason": "no disk"`) {
		t.Errorf("report: got %s, want the reason", body)
	}
}

// The form says what the flags say, and shows what cannot be run with its reason.
func TestServer_home(t *testing.T) {
	t.Parallel()
	_, home := open(t, newLab()).ask(t, http.MethodGet, "/", "")
	for _, want := range []string{
		`value="77"`, `value="2.5"`, `data-lesson="A &lt;lease&gt;."`,
		`id="off-zookeeper">zookeeper – <span>it needs a ZooKeeper`, `disabled aria-describedby="off-zookeeper"`,
	} {
		if !strings.Contains(home, want) {
			t.Errorf("want %s in\n%s", want, home)
		}
	}
	if got := strings.Count(home, " checked"); got != 1 {
		t.Errorf("checked: got %d, want none alone", got)
	}
}

// "A request that changes something must be of the same origin".
func TestGuard(t *testing.T) {
	t.Parallel()
	s := open(t, newLab())
	post := func(host, header, value string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "http://"+host+"/stop", nil)
		if header != "" {
			r.Header.Set(header, value)
		}
		return r
	}
	tests := []struct {
		name string
		r    *http.Request
		want int
	}{
		{"an address", post("192.0.2.7:8090", "", ""), 204},
		{"an address of six", post("[::1]:8090", "", ""), 204},
		{"localhost", post("localhost", "", ""), 204},
		{"the name that was listened on", post("Lab.example:8090", "", ""), 204},
		{"a name that was made to lead here", post("evil.example:8090", "", ""), 421},
		{"the page itself", post("localhost:8090", "Sec-Fetch-Site", "same-origin"), 204},
		{"another page", post("localhost:8090", "Sec-Fetch-Site", "cross-site"), 403},
		{"another port of this machine", post("localhost:8090", "Sec-Fetch-Site", "same-site"), 403},
		{"another page of an old browser", post("localhost:8090", "Origin", "http://evil.example"), 403},
		{"a form's type of content", func() *http.Request {
			r := httptest.NewRequest(http.MethodPost, "http://localhost/run", strings.NewReader(choice))
			r.Header.Set("Content-Type", "text/plain")
			return r
		}(), 415},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if status, body := s.send(t, tt.r); status != tt.want {
				t.Errorf("got %d %s, want %d", status, body, tt.want)
			}
		})
	}
}

func TestServer_schedule(t *testing.T) {
	t.Parallel()
	s := open(t, newLab(ownShops, func(lab *Lab) {
		lab.Position = func(_ context.Context, name string, loose bool) (step.Position, error) {
			switch name {
			case "none:Q":
				return step.Position{}, fmt.Errorf("%w: Q", step.ErrSchedule)
			case "redis*2:A":
				return step.Position{}, errors.New("no disk")
			}
			return step.Position{Schedule: name, Over: loose}, nil
		}
	}))
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{"a part of it", `{"name":"none:AB"}`, 200, `"schedule":"none:AB"`},
		{"to its end", `{"name":"none:AB","loose":true}`, 200, `"over":true`},
		{"does not fit", `{"name":"none:Q"}`, 422, `"cannot be played: Q"`},
		{"could not be played", `{"name":"redis*2:A"}`, 500, `it could not be played: no disk`},
	}
	for _, tt := range tests {
		if status, body := s.ask(t, http.MethodPost, "/schedule", tt.body); status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: got %d %s, want %d and %s", tt.name, status, body, tt.status, tt.want)
		}
	}
	if status, body := s.ask(t, http.MethodGet, "/lessons", ""); status != http.StatusOK || !strings.Contains(body, `"ask":1`) {
		t.Errorf("lessons: got %d %s", status, body)
	}
	if _, lua := s.ask(t, http.MethodGet, "/script?command=EVALSHA+release+lock:{sku:mug}", ""); !strings.Contains(lua, "redis.call") {
		t.Errorf("script: got %q, want Lua", lua)
	}
	for path, want := range map[string]int{
		"/source/internal/order/strategy/none.go": 200, "/source/internal/lab/wronglocks.go": 200, "/source/internal/order/batch/sell.go": 200,
		"/source/internal/auth/token.go": 404, "/source/": 404, "/source/internal/order/strategy/": 404, "/source/internal/lab/shop.go": 404,
	} {
		if status, body := s.ask(t, http.MethodGet, path, ""); status != want {
			t.Errorf("%s: got %d %.80s, want %d", path, status, body, want)
		}
	}
}

// Shops of others are neither stopped nor killed.
func TestServer_no_lessons(t *testing.T) {
	t.Parallel()
	s := open(t, newLab())
	for path, body := range map[string]string{"/schedule": `{"name":"none:A"}`, "/explore": `{"strategy":"none"}`} {
		if status, _ := s.ask(t, http.MethodPost, path, body); status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, status)
		}
	}
	if _, home := s.ask(t, http.MethodGet, "/", ""); strings.Contains(home, `id="game"`) {
		t.Error("the page has a game")
	}
}

// While all schedules of a strategy are played, a run is refused, and others' schedules wait. What was found is kept.
func TestServer_explore(t *testing.T) {
	t.Parallel()
	begun, end := make(chan string), make(chan struct{})
	s := open(t, newLab(ownShops, func(lab *Lab) {
		lab.Explore = func(_ context.Context, strategy string, within step.Bounds, progress func(played, todo int)) (step.Explored, error) {
			progress(3, 9)
			begun <- fmt.Sprint(strategy, within.Buyers, within.Units, within.Crash)
			<-end
			return step.Explored{Strategy: strategy}, nil
		}
	}))
	told := make(chan string, 2)
	explore := func(body string) {
		_, lines := s.ask(t, http.MethodPost, "/explore", body)
		told <- lines
	}
	go explore(`{"strategy":"none","units":2,"crash":true}`)
	if got, want := <-begun, "none3 2 true"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if status, body := s.ask(t, http.MethodPost, "/run", choice); status != http.StatusConflict || !strings.Contains(body, `"passing":true`) {
		t.Errorf("run meanwhile: got %d %s, want 409", status, body)
	}
	go explore(`{"strategy":"redis","units":1}`)
	close(end)
	if got, want := <-told, `{"played":3,"todo":9}`; !strings.HasPrefix(got, want) || !strings.Contains(got, `"strategy":"none"`) {
		t.Errorf("got %s, want %s, and what was found", got, want)
	}
	<-begun
	if got := <-told; !strings.Contains(got, `"strategy":"redis"`) {
		t.Errorf("got %s, want the outcome of the schedules of redis", got)
	}
	if _, got := s.ask(t, http.MethodPost, "/explore", `{"strategy":"redis","units":1}`); strings.Contains(got, "\n") ||
		!strings.Contains(got, `"found"`) {
		t.Errorf("again: got %s, want the kept outcome alone", got)
	}
	for body, want := range map[string]int{`{"strategy":"none","units":3}`: 422, `{"strategie":"none"}`: 400} {
		if status, _ := s.ask(t, http.MethodPost, "/explore", body); status != want {
			t.Errorf("%s: got %d, want %d", body, status, want)
		}
	}
	if status, body := s.ask(t, http.MethodPost, "/run", choice); status != http.StatusAccepted {
		t.Errorf("afterwards: got %d %s, want 202", status, body)
	}
	s.finish(t)
}

// A lesson is played once for all requests. "All lessons [are played] before they are asked for".
// One that failed is played again.
func TestServer_lesson(t *testing.T) {
	t.Parallel()
	var plays []string
	s := open(t, newLab(ownShops, func(lab *Lab) {
		lab.Lessons = append(lab.Lessons, step.Lesson{Name: "watch", Schedule: "zookeeper:ab"})
		lab.Record = func(_ context.Context, l step.Lesson) (step.Recording, error) {
			if plays = append(plays, l.Name); l.Name == "watch" {
				return step.Recording{}, fmt.Errorf("%w: it needs a ZooKeeper", step.ErrSchedule)
			}
			return step.Recording{Mistake: []step.Position{{Schedule: "none:"}}}, nil
		}
	}))
	s.playAhead(t.Context())
	for _, tt := range []struct {
		name   string
		status int
		want   string
	}{
		{"none", 200, `"mistake":[{"schedule":"none:"`}, {"watch", 422, "it needs a ZooKeeper"}, {"nonsense", 404, "no such lesson"},
	} {
		if status, body := s.ask(t, http.MethodPost, "/lesson", `{"name":"`+tt.name+`"}`); status != tt.status ||
			!strings.Contains(body, tt.want) {
			t.Errorf("%s: got %d %s, want %d and %s", tt.name, status, body, tt.status, tt.want)
		}
	}
	if got, want := strings.Join(plays, " "), "none watch watch"; got != want {
		t.Errorf("played: got %s, want %s", got, want)
	}
	if _, body := s.ask(t, http.MethodGet, "/lessons", ""); !strings.Contains(body, `"missing":"it needs a ZooKeeper"`) {
		t.Errorf("lessons: got %s, want the server that one of them lacks", body)
	}
}

// A failover shows each receipt beside its row, or that there is no row. Before it starts, it says if
// something is missing.
func TestServer_failover(t *testing.T) {
	t.Parallel()
	receipt := func(id, row string) faults.Receipt {
		return faults.Receipt{Order: "01900000-0000-7000-8000-" + id, Units: "1 <deep>", Row: row}
	}
	primary := func(err error) func(*Lab) {
		return func(lab *Lab) {
			lab.CanKillPrimary = func(context.Context) error { return err }
			lab.KillPrimary = func(context.Context, uint64, func(string)) ([]faults.Failover, error) {
				return []faults.Failover{{Servers: "asynchronous replica", Sold: 4, Lost: 1, Gap: 1500 * time.Millisecond, Receipts: []faults.Receipt{
					receipt("00000000000a", "1 <deep>"), receipt("00000000000b", ""),
				}}}, err
			}
		}
	}
	s := open(t, newLab(ownShops, primary(nil)))
	if status, body := s.ask(t, http.MethodGet, "/failover", ""); status != http.StatusOK {
		t.Errorf("is anything missing: got %d %s", status, body)
	}
	status, body := s.ask(t, http.MethodPost, "/failover", "{}")
	var shown struct{ HTML string }
	if err := json.Unmarshal([]byte(body), &shown); err != nil || status != http.StatusOK {
		t.Fatalf("got %d %s", status, body)
	}
	for _, want := range []string{
		"asynchronous replica", `<dd class="bad">1</dd>`, "1.5 s", "<code>00000000000a</code></th><td>1 &lt;deep&gt;</td><td>1 &lt;deep&gt;</td>",
		`<code>00000000000b</code></th><td>1 &lt;deep&gt;</td><td class="word bad">no row</td>`,
		`class="over" x="75.00%" y="6" height="24" width="25.00%"`,
	} {
		if !strings.Contains(shown.HTML, want) {
			t.Errorf("want %s in\n%s", want, shown.HTML)
		}
	}
	s = open(t, newLab(ownShops, primary(errors.New("no Docker"))))
	for method, want := range map[string]int{http.MethodGet: http.StatusUnprocessableEntity, http.MethodPost: http.StatusInternalServerError} {
		if status, body := s.ask(t, method, "/failover", "{}"); status != want || !strings.Contains(body, "no Docker") {
			t.Errorf("without Docker: got %d %s, want %d", status, body, want)
		}
	}
	if status, _ := open(t, newLab()).ask(t, http.MethodPost, "/failover", "{}"); status != http.StatusNotFound {
		t.Errorf("on others' shops: got %d, want 404", status)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		":8090":     "127.0.0.1:8090", // this machine alone
		"0.0.0.0:0": "0.0.0.0:0",
	} {
		if got, err := Address(address); got != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", address, got, err, want)
		}
	}
	for _, address := range []string{"", "8090", "127.0.0.1", "127.0.0.1:65536", "::1:80"} {
		if _, err := Address(address); err == nil {
			t.Errorf("%q: got no error", address)
		}
	}
}

// Serve serves "until ctx ends, which also ends a run". "When it returns, nothing of it runs any more": TestMain checks
// this. An event is the whole state.
func TestServe(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	lab := newLab()
	lab.Race = func(ctx context.Context, _ Choice, _ shopclient.Strategy, _ *crowd.Tally) (result.Strategy, error) {
		close(begun)
		<-ctx.Done()
		return result.Strategy{}, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	lines, served := make(chan string, 9), make(chan error, 1)
	go func() { served <- Serve(ctx, "127.0.0.1:0", lab, func(line string) { lines <- line }) }()
	line := <-lines
	url := strings.TrimSuffix(strings.TrimPrefix(line, "The race lab is at "), "/ until Ctrl-C.")

	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(url + "/events")
	if err != nil {
		t.Fatalf("%v after %q", err, line)
	}
	defer answer.Body.Close()
	if got := answer.Header.Get("Content-Security-Policy"); got != policy {
		t.Errorf("policy: got %q, want %q", got, policy)
	}
	accepted, err := client.Post(url+"/run", "application/json", strings.NewReader(`{"strategies":["none"],"buyers":3}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = accepted.Body.Close()
	<-begun
	var last state
	for events := bufio.NewScanner(answer.Body); last.Phase != running && events.Scan(); {
		if data, ok := strings.CutPrefix(events.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &last); err != nil {
				t.Fatal(err)
			}
		}
	}
	if last.Run != 1 || last.Choice.Buyers != 3 || len(last.Races) != 1 {
		t.Errorf("event: got %+v, want the first run", last)
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("got %v, want nil", err)
	}
}
