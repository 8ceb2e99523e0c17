package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	teaching "example.com/shop/internal/lab"
	"example.com/shop/loadtest/faults"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
)

// Limits of the server. It reads small forms from a browser on this machine.
const (
	bodyLimit    = 64 << 10
	readTimeout  = 5 * time.Second
	drainTimeout = 10 * time.Second
)

// server knows the last run, which may still go on.
type server struct {
	lab  Lab
	ctx  context.Context //nolint:containedctx // runs outlive the request that starts them
	work sync.WaitGroup
	busy atomic.Bool // with a run or other long work
	last atomic.Pointer[run]

	playing singleflight.Group
	played  sync.Map // what was recorded of lessons, and found in schedules
}

// newServer returns a server whose last run is empty, so that there is always a last run.
func newServer(ctx context.Context, lab Lab) *server {
	s := &server{lab: lab, ctx: ctx}
	before := newRun(ctx, 0, Choice{}, nil)
	before.phase = idle
	s.last.Store(before)
	return s
}

// Serve serves the page at an address until ctx ends, which also ends a run. It reports where, before anything can be
// asked. When it returns, nothing of it runs any more.
//
// One run goes on at a time, or all schedules of a strategy are played, or a primary is killed; a
// second run is refused (409), and schedules wait for their turn. Lessons and single schedules are
// played at any time, and all lessons before they are asked for. Nothing leaves the page's origin: its
// Content-Security-Policy forbids it. Guard of internal/lab refuses the requests of other sites.
func Serve(ctx context.Context, address string, lab Lab, report func(line string)) error {
	address, err := Address(address)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	report(fmt.Sprintf("The race lab is at http://%s/ until Ctrl-C.", listener.Addr()))
	if at, err := netip.ParseAddrPort(listener.Addr().String()); err != nil || !at.Addr().IsLoopback() {
		report("Every client that can reach this address can start races on this machine.")
	}
	name, _, _ := net.SplitHostPort(address)
	ctx, end := context.WithCancel(ctx)
	s := newServer(ctx, lab)
	defer s.work.Wait()
	defer end()
	web := &http.Server{
		Handler:     guard(name, s.routes()),
		ReadTimeout: readTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	s.work.Go(func() { s.playAhead(ctx) })
	s.work.Go(func() {
		<-ctx.Done()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if web.Shutdown(closing) != nil {
			_ = web.Close() // a client neither reads nor writes
		}
	})
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Address returns an address as net.Listen wants it. Without a host it is this machine alone: a page without passwords
// is not open to every client by default.
func Address(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil {
		return "", fmt.Errorf("%q: want host:port such as 127.0.0.1:8090", address)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

// policy lets the page load what is served beside it, show a picture that it has drawn itself, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard turns away requests of other pages. name is the host that was listened on.
func guard(name string, next http.Handler) http.Handler {
	guarded := teaching.Guard(name, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		guarded.ServeHTTP(w, r)
	})
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", get(s.home))
	mux.HandleFunc("GET /static/{file}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, static, "static/"+r.PathValue("file")) //nolint:gosec // one of the embedded files
	})
	mux.HandleFunc("GET /static/zh.json", get(func(*http.Request) (any, error) {
		return file{kind: jsonText, content: lang.Chinese}, nil
	}))
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /lessons", get(s.lessons))
	mux.HandleFunc("GET /source/{path...}", get(source))
	mux.HandleFunc("GET /script", get(func(r *http.Request) (any, error) {
		return file{kind: plainText, content: []byte(teaching.Script(r.FormValue("command")))}, nil
	}))
	mux.HandleFunc("GET /runs/{id}/{form}", get(s.report))
	mux.HandleFunc("POST /run", post(s, http.StatusAccepted, s.run))
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, _ *http.Request) { // the events report when the run has ended
		s.last.Load().stop()
		w.WriteHeader(http.StatusNoContent)
	})
	if len(s.lab.Lessons) > 0 { // with shops of its own
		mux.HandleFunc("POST /lesson", post(s, http.StatusOK, s.lesson))
		mux.HandleFunc("POST /schedule", post(s, http.StatusOK, s.schedule))
		mux.HandleFunc("POST /explore", s.explore)
		mux.HandleFunc("GET /failover", get(s.canKill))
		mux.HandleFunc("POST /failover", post(s, http.StatusOK, s.failover))
	}
	return mux
}

// home is the page as it is before any script has run. The form begins with the strategies of the
// flags, five at most, and has the others folded.
func (s *server) home(*http.Request) (any, error) {
	type option struct {
		shopclient.Strategy
		First, Checked bool
		Note           string // why it cannot be raced, or what to know before
	}
	groups := map[string][]option{} // by title, which is also their order on the page
	wanted := s.lab.Defaults.Strategies
	for _, strategy := range s.lab.Strategies {
		title := "Broken on purpose"
		if strategy.Designed {
			title = "Designed to be correct"
		}
		place := slices.Index(wanted, strategy.Name)
		why, _ := s.lab.Unraced(strategy.Name)
		groups[title] = append(groups[title], option{strategy, place >= 0 && place < 5, place >= 0 && strategy.Available,
			cmp.Or(strategy.Reason, why)})
	}
	return page("home.html", "en", map[string]any{"Groups": groups, "Defaults": s.lab.Defaults, "Lessons": s.lab.Lessons})
}

// eventPause is how often the page gets a changed state.
const eventPause = 100 * time.Millisecond

// events sends the state at once, and then whenever it has changed, as server-sent events. Each is the whole state,
// so that a page that lost its connection needs no history.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	var sent []byte
	for more := true; more; more = shopclient.Pause(r.Context(), eventPause) {
		state := s.last.Load().state(r.FormValue("lang"))
		state.Busy = s.busy.Load()
		now, err := json.Marshal(state)
		if err != nil {
			return
		}
		if !bytes.Equal(now, sent) {
			if _, err := fmt.Fprintf(w, "data: %s\n\n", now); err != nil || out.Flush() != nil {
				return
			}
			sent = now
		}
	}
}

// run begins the races of a choice.
func (s *server) run(_ context.Context, c Choice) (any, error) {
	chosen, err := shopclient.Pick(s.lab.Strategies, c.Strategies)
	if err != nil {
		return nil, &InputError{Field: "strategies", Text: err.Error()}
	}
	fit, err := s.lab.Check(c)
	if err != nil {
		return nil, err
	}
	if !s.busy.CompareAndSwap(false, true) {
		return nil, errBusy
	}
	next := newRun(s.ctx, s.last.Load().id+1, fit, chosen) //nolint:contextcheck // runs outlive the request that starts them
	next.unfit = c.Together && !fit.Together
	s.last.Store(next)
	s.work.Go(func() { next.hold(s.lab, func() { s.busy.Store(false) }) })
	return map[string]int{"run": next.id}, nil
}

// canKill answers with the reason why no primary can be killed here, if there is one.
func (s *server) canKill(r *http.Request) (any, error) {
	if err := s.lab.CanKillPrimary(r.Context()); err != nil {
		return nil, &InputError{Text: err.Error()}
	}
	return struct{}{}, nil
}

// failover kills primaries, which takes minutes. It ends with the request.
func (s *server) failover(ctx context.Context, _ struct{}) (any, error) {
	if !s.busy.CompareAndSwap(false, true) {
		return nil, errBusy
	}
	defer s.busy.Store(false)
	all, err := s.lab.KillPrimary(ctx, 1, func(string) {})
	if err != nil {
		return nil, err
	}
	shown, err := page("failover", "en", map[string]any{"All": all, "GroupOfThree": faults.GroupOfThree})
	return map[string]string{"html": string(shown.content)}, err
}

// report is the result of the last run, in one of four forms.
func (s *server) report(r *http.Request) (any, error) {
	last := s.last.Load()
	report, there := last.outcome()
	if !there || strconv.Itoa(last.id) != r.PathValue("id") {
		return nil, &InputError{Text: "only the report of the last run is kept", status: http.StatusNotFound}
	}
	var b bytes.Buffer
	language := cmp.Or(r.FormValue("lang"), "en")
	switch form := r.PathValue("form"); form {
	case "result":
		return page("result", language, newView(report, language))
	case "report.html":
		err := WriteReport(&b, report, language)
		return file{htmlText, b.Bytes(), form}, err
	case "report.json":
		err := result.JSON(report)(&b)
		return file{jsonText, b.Bytes(), form}, err
	case "report.csv":
		err := result.CSV(report)(&b)
		return file{csvText, b.Bytes(), form}, err
	}
	return nil, &InputError{Text: "there are result, report.html, report.json and report.csv", status: http.StatusNotFound}
}

var errBusy = &InputError{Text: "the lab is busy already; wait until that is over, or stop it", Passing: true, status: http.StatusConflict}

// file is an answer that is not JSON.
type file struct {
	kind    string
	content []byte
	name    string // under which a browser saves it; empty if it shows it
}

const (
	htmlText  = "text/html; charset=utf-8"
	jsonText  = "application/json"
	csvText   = "text/csv; charset=utf-8"
	plainText = "text/plain; charset=utf-8"
)

// page shows data by a template, in a language.
func page(name, language string, data any) (file, error) {
	var b bytes.Buffer
	err := execute(&b, name, language, data)
	return file{kind: htmlText, content: b.Bytes()}, err
}

// get answers with what do returns.
func get(do func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := do(r)
		answer(w, http.StatusOK, body, err)
	}
}

// post answers with what do returns of the JSON in a request. The server waits for it when it ends.
func post[T any](s *server, status int, do func(context.Context, T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.work.Add(1)
		defer s.work.Done()
		var body any
		asked, err := decode[T](w, r)
		if err == nil {
			body, err = do(r.Context(), asked)
		}
		answer(w, status, body, err)
	}
}

func decode[T any](w http.ResponseWriter, r *http.Request) (asked T, err error) {
	if r.Header.Get("Content-Type") != "application/json" {
		return asked, &InputError{Text: "want JSON", status: http.StatusUnsupportedMediaType}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimit))
	d.DisallowUnknownFields()
	err = d.Decode(&asked)
	if misfit, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = &InputError{Field: misfit.Field, Text: "want a whole number"}
	} else if err != nil {
		err = &InputError{Text: "want JSON of a choice: " + err.Error(), status: http.StatusBadRequest}
	}
	return asked, err
}

// answer writes a file as it is, any other body as JSON, and instead of them an error as an InputError.
func answer(w http.ResponseWriter, status int, body any, err error) {
	if err != nil {
		problem, known := errors.AsType[*InputError](err)
		if !known {
			problem = &InputError{Text: err.Error(), status: http.StatusInternalServerError}
		}
		status, body = cmp.Or(problem.status, http.StatusUnprocessableEntity), problem
	}
	f, ok := body.(file)
	if !ok {
		f.kind = jsonText
		f.content, _ = json.Marshal(body) // of our own types
	}
	w.Header().Set("Content-Type", f.kind)
	if f.name != "" {
		w.Header().Set("Content-Disposition", "attachment; filename="+f.name)
	}
	w.WriteHeader(status)
	_, _ = w.Write(f.content) // a client that went away needs no answer
}
