package ui

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/shop/loadtest/report"
)

const choice = `{"strategies":["none","redis"],"buyers":60,"stock":7,"together":true}`

func TestServer_bad_input(t *testing.T) {
	t.Parallel()
	s := open(t, fakeLab{race: oversells})
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{"outside of the flags' limits", `{"strategies":["none"],"buyers":0}`, 422, `{"field":"buyers","text":"want 1 to 100000"}`},
		{"half a buyer", `{"strategies":["none"],"buyers":1.5}`, 422, `{"field":"buyers","text":"want a whole number"}`},
		{"no strategy", `{"strategies":[],"buyers":5}`, 422, `{"field":"strategies","text":"choose at least one"}`},
		{"an unknown strategy", `{"strategies":["all"],"buyers":5}`, 422, `"there is no strategy of that name"`},
		{"one that lacks a server", `{"strategies":["zookeeper"],"buyers":5}`, 422, `"zookeeper cannot be run: it needs a ZooKeeper"`},
		{"an unknown field", `{"buyer":5}`, 400, `unknown field`},
		{"no JSON", `buyers=5`, 400, `want JSON`},
		{"too long", `{"strategies":["` + strings.Repeat("x", longest) + `"]}`, 413, `too long`},
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

// doc.go: "who asks for a second is told so (409)".
func TestServer_one_run_at_a_time(t *testing.T) {
	t.Parallel()
	s := open(t, fakeLab{race: func(ctx context.Context, _ string, _ Watcher) (report.Strategy, error) {
		<-ctx.Done()
		return report.Strategy{}, context.Cause(ctx)
	}})
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
	if got, want := s.finish(t).Said, "Stopped: none stopped, redis stopped."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if status, body := s.ask(t, http.MethodPost, "/run", choice); status != http.StatusAccepted || body != `{"run":2}` {
		t.Errorf("after the stop: got %d %s, want 202", status, body)
	}
}

// The result is a part of the report's page; the files are the report.
func TestServer_report(t *testing.T) {
	t.Parallel()
	s := open(t, fakeLab{race: oversells})
	s.ask(t, http.MethodPost, "/run", choice)
	told := s.finish(t)
	if told.Said != "Done: none oversold by 2, redis oversold by 2." || !told.Result || told.Races[0].Orders != 9 {
		t.Errorf("state: got %+v, want both oversold", told)
	}
	for path, want := range map[string]string{
		"/runs/1/result":      `<section aria-labelledby="verdicts">`,
		"/runs/1/report.html": "<!DOCTYPE html>",
		"/runs/1/report.json": `"oversold": 2`,
	} {
		if status, body := s.ask(t, http.MethodGet, path, ""); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %.100s, want %s", path, status, body, want)
		}
	}
	for _, path := range []string{"/runs/2/result", "/runs/1/report.pdf", "/static/nothing.js", "/nothing"} {
		if status, _ := s.ask(t, http.MethodGet, path, ""); status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, status)
		}
	}
}

// A race that fails says why, and the others go on.
func TestServer_failed_race(t *testing.T) {
	t.Parallel()
	s := open(t, fakeLab{race: func(ctx context.Context, strategy string, watch Watcher) (report.Strategy, error) {
		if strategy == "none" {
			return report.Strategy{}, errors.New("no disk")
		}
		return oversells(ctx, strategy, watch)
	}})
	s.ask(t, http.MethodPost, "/run", choice)
	told := s.finish(t)
	if told.Said != "Failed: none failed, redis oversold by 2." || told.Races[0].Failure != "no disk" {
		t.Errorf("got %+v, want the failure of one and the result of the other", told)
	}
	if _, body := s.ask(t, http.MethodGet, "/runs/1/report.json", ""); !strings.Contains(body, `"reason": "no disk"`) {
		t.Errorf("report: got %s, want the reason", body)
	}
}

// The form says what the flags say, and shows what cannot be run with its reason.
func TestServer_home(t *testing.T) {
	t.Parallel()
	_, home := open(t, fakeLab{}).ask(t, http.MethodGet, "/", "")
	for _, want := range []string{
		`value="77"`, `value="2.5"`, `data-lesson="A &lt;lease&gt;."`, `id="off-zookeeper">zookeeper: it needs a ZooKeeper`, `disabled aria-describedby="off-zookeeper"`,
	} {
		if !strings.Contains(home, want) {
			t.Errorf("want %s in\n%s", want, home)
		}
	}
	if got := strings.Count(home, " checked"); got != 1 {
		t.Errorf("checked: got %d, want none alone", got)
	}
}

// doc.go: "Others' pages reach nothing here".
func TestGuard(t *testing.T) {
	t.Parallel()
	s := open(t, fakeLab{race: oversells})
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
