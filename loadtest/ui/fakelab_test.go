package ui

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.com/shop/loadtest/buyers"
	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bound is far beyond what anything here takes.
const bound = time.Minute

// fakeLab holds races that a test steers.
type fakeLab struct {
	race func(ctx context.Context, strategy string, watch Watcher) (report.Strategy, error)
	play func(ctx context.Context, strategy, scenario string) (steps.Play, error)
}

func (fakeLab) Strategies() []shopclient.Strategy {
	return []shopclient.Strategy{
		{Name: "redis", PromisesCorrect: true, Lesson: "A <lease>.", Available: true},
		{Name: "zookeeper", PromisesCorrect: true, Lesson: "A node.", Reason: "it needs a ZooKeeper"},
		{Name: "none", Lesson: "Read, think, write.", Available: true},
	}
}

func (fakeLab) Usual() Choice {
	return Choice{Strategies: []string{"none", "zookeeper"}, Buyers: 77, Stock: 7, Instances: 3, ThinkMS: 2.5}
}

func (fakeLab) Check(c Choice) *Problem {
	if c.Buyers == 0 {
		return &Problem{"buyers", "want 1 to 100000"}
	}
	return nil
}

func (l fakeLab) Race(ctx context.Context, _ Choice, how shopclient.Strategy, watch Watcher) (report.Strategy, error) {
	return l.race(ctx, how.Name, watch)
}

func (fakeLab) Scenarios() []steps.Scenario {
	return []steps.Scenario{{Name: "lost-update", Title: "A <stops>"}, {Name: "crash", Title: "A dies"}}
}

func (fakeLab) Excuse(how shopclient.Strategy, what steps.Scenario) string {
	if how.Name == "none" && what.Name == "crash" {
		return "it has no lock"
	}
	return ""
}

func (l fakeLab) Play(ctx context.Context, how shopclient.Strategy, what steps.Scenario) (steps.Play, error) {
	return l.play(ctx, how.Name, what.Name)
}

func (fakeLab) Blank(c Choice) report.Report {
	return report.Report{Run: report.Run{Buyers: c.Buyers, Stock: c.Stock}, NotRun: []report.NotRun{}}
}

// oversells is a race that sells 9 units of 7.
func oversells(ctx context.Context, strategy string, watch Watcher) (report.Strategy, error) {
	tally := new(buyers.Tally)
	watch.Connecting(tally)
	watch.Ready(ctx)
	tally.Ordered.Store(9)
	watch.Answered()
	return report.Strategy{Name: strategy, Supplied: 7, Orders: 9, UnitsSold: 9, Oversold: 2, Verdict: "oversold", Notes: []string{}}, nil
}

// open serves a lab without a listener of its own until the test ends.
func open(t *testing.T, lab Lab) *server {
	t.Helper()
	s := newServer(lab)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.work(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
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
	routes, err := s.routes()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	guard("lab.example", routes).ServeHTTP(w, r)
	text, _ := io.ReadAll(w.Result().Body)
	return w.Code, strings.TrimSpace(string(text))
}

// finish returns the state when the run is over.
func (s *server) finish(t *testing.T) state {
	t.Helper()
	deadline := time.Now().Add(bound)
	for !s.latest().over() {
		if time.Now().After(deadline) {
			t.Fatalf("the run goes on: %+v", s.latest().state())
		}
		time.Sleep(time.Millisecond)
	}
	return s.latest().state()
}
