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
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	teaching "example.com/shop/internal/lab"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/step"
)

// Limits of the server. It reads small forms from a browser on this machine.
const (
	bodyLimit    = 64 << 10
	readTimeout  = 5 * time.Second
	drainTimeout = 10 * time.Second

	playTimeout     = time.Minute // of one schedule
	exploreTimeout  = 5 * time.Minute
	failoverTimeout = 30 * time.Minute // the first time, images are pulled
)

// server knows the last run, which may still go on.
type server struct {
	lab  Lab
	ctx  context.Context //nolint:containedctx // runs outlive the request that starts them
	work sync.WaitGroup
	busy atomic.Bool // with a run or other long work
	last atomic.Pointer[run]
}

// newServer returns a server whose last run is an empty one, so that there is always one.
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
// One run goes on at a time, or all schedules of a strategy are played, or a primary is killed; a second request is refused
// (409), and during a run, so is any schedule. Nothing leaves the page's origin: its Content-Security-Policy forbids it. A
// request that changes something must be of the same origin, and the Host of each must be an address, localhost or the name
// that was listened on, so that no foreign name leads here.
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
	group, ctx := errgroup.WithContext(ctx)
	s := newServer(ctx, lab)
	defer s.work.Wait()
	web := &http.Server{
		Handler:     guard(name, s.routes()),
		ReadTimeout: readTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	group.Go(func() error {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if web.Shutdown(closing) == nil {
			return nil
		}
		return web.Close() // a client neither reads nor writes
	})
	return group.Wait()
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

// policy lets the page load what is served beside it, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard turns away requests of other pages. name is the host that was listened on.
func guard(name string, next http.Handler) http.Handler {
	sameOrigin := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !trusted(r.Host, name) {
			refuse(w, http.StatusMisdirectedRequest, errors.New("this is not the host that the lab listens on"))
			return
		}
		sameOrigin.ServeHTTP(w, r)
	})
}

// trusted reports whether a Host can only be meant for this server. The owner of a name can make it lead anywhere; an
// address cannot be redirected.
func trusted(host, name string) bool {
	host = (&url.URL{Host: host}).Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return strings.EqualFold(host, "localhost") || strings.EqualFold(host, name)
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.getHome)
	mux.HandleFunc("GET /static/{file}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, static, "static/"+r.PathValue("file")) //nolint:gosec // one of the embedded files
	})
	mux.HandleFunc("GET /static/zh.json", func(w http.ResponseWriter, _ *http.Request) { answer(w, "application/json", lang.Chinese) })
	mux.HandleFunc("GET /events", s.getEvents)
	mux.HandleFunc("POST /run", s.postRun)
	mux.HandleFunc("POST /stop", s.postStop)
	mux.HandleFunc("GET /lessons", func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, http.StatusOK, s.lab.Lessons) })
	if len(s.lab.Lessons) > 0 { // with shops of its own
		mux.HandleFunc("POST /schedule", s.postSchedule)
		mux.HandleFunc("POST /explore", s.postExplore)
		mux.HandleFunc("POST /failover", s.postFailover)
	}
	mux.HandleFunc("GET /source/{path...}", getSource)
	mux.HandleFunc("GET /script", func(w http.ResponseWriter, r *http.Request) {
		answer(w, "text/plain; charset=utf-8", []byte(teaching.Script(r.FormValue("command"))))
	})
	mux.HandleFunc("GET /runs/{id}/{form}", s.getReport)
	return mux
}

// getHome answers the page as it is before any script has run.
func (s *server) getHome(w http.ResponseWriter, _ *http.Request) {
	type group struct {
		Title      string
		Strategies []shopclient.Strategy
	}
	groups := []group{{Title: "Broken on purpose"}, {Title: "Designed to be correct"}}
	for _, strategy := range s.lab.Strategies {
		to := &groups[0]
		if strategy.Designed {
			to = &groups[1]
		}
		to.Strategies = append(to.Strategies, strategy)
	}
	var home bytes.Buffer
	err := execute(&home, "home.html", map[string]any{"Groups": groups, "Defaults": s.lab.Defaults, "Lessons": s.lab.Lessons})
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	answer(w, "text/html; charset=utf-8", home.Bytes())
}

// eventPause is how often the page gets a changed state.
const eventPause = 100 * time.Millisecond

// getEvents sends the state at once, and then whenever it has changed, as server-sent events. Each is the whole state,
// so that a page that lost its connection needs no history.
func (s *server) getEvents(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	tick := time.NewTicker(eventPause)
	defer tick.Stop()
	var sent []byte
	for {
		now, err := json.Marshal(s.last.Load().state(r.FormValue("lang")))
		if err != nil {
			return
		}
		if !bytes.Equal(now, sent) {
			if _, err := fmt.Fprintf(w, "data: %s\n\n", now); err != nil || out.Flush() != nil {
				return
			}
			sent = now
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

var errBusy = errors.New("the lab is busy already; wait until that is over, or stop it")

func (s *server) postRun(w http.ResponseWriter, r *http.Request) {
	var c Choice
	if !decode(w, r, &c) {
		return
	}
	chosen, err := shopclient.Pick(s.lab.Strategies, c.Strategies)
	if err != nil {
		err = &InputError{"strategies", err.Error()}
	} else {
		err = s.lab.Check(c)
	}
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, err)
		return
	}
	if !s.busy.CompareAndSwap(false, true) {
		refuse(w, http.StatusConflict, errBusy)
		return
	}
	next := newRun(s.ctx, s.last.Load().id+1, c, chosen) //nolint:contextcheck // runs outlive the request that starts them
	s.last.Store(next)
	s.work.Go(func() { next.hold(s.lab, func() { s.busy.Store(false) }) })
	answerJSON(w, http.StatusAccepted, map[string]int{"run": next.id})
}

// postStop returns at once; the events report when the run has ended.
func (s *server) postStop(w http.ResponseWriter, _ *http.Request) {
	s.last.Load().stop()
	w.WriteHeader(http.StatusNoContent)
}

// postSchedule plays a schedule as far as its name says, which takes a moment. It ends with the request.
func (s *server) postSchedule(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Name  string `json:"name"`
		Loose bool   `json:"loose"`
	}
	if !decode(w, r, &asked) {
		return
	}
	strategy := asked.Name[:max(0, strings.IndexAny(asked.Name, ":*"))]
	if !s.playable(w, strategy) {
		return
	}
	if !s.last.Load().over() {
		refuse(w, http.StatusConflict, errBusy)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), playTimeout)
	defer cancel()
	position, err := s.lab.Position(ctx, asked.Name, asked.Loose)
	answerPlayed(w, position, err)
}

// postExplore plays all schedules of a strategy, which takes seconds. It ends with the request.
func (s *server) postExplore(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Strategy string `json:"strategy"`
		Crash    bool   `json:"crash"`
	}
	if !decode(w, r, &asked) || !s.playable(w, asked.Strategy) {
		return
	}
	s.occupy(w, r, exploreTimeout, func(ctx context.Context) {
		explored, err := s.lab.Explore(ctx, asked.Strategy, asked.Crash)
		answerPlayed(w, explored, err)
	})
}

// postFailover kills primaries, which takes minutes. It ends with the request.
func (s *server) postFailover(w http.ResponseWriter, r *http.Request) {
	s.occupy(w, r, failoverTimeout, func(ctx context.Context) {
		var html bytes.Buffer
		all, err := s.lab.KillPrimary(ctx)
		if err == nil {
			err = execute(&html, "failover", all)
		}
		if err != nil {
			refuse(w, http.StatusInternalServerError, err)
			return
		}
		answerJSON(w, http.StatusOK, map[string]string{"html": html.String()})
	})
}

// occupy does long work that ends with the request, unless something goes on already.
func (s *server) occupy(w http.ResponseWriter, r *http.Request, limit time.Duration, work func(context.Context)) {
	if !s.busy.CompareAndSwap(false, true) {
		refuse(w, http.StatusConflict, errBusy)
		return
	}
	defer s.busy.Store(false)
	s.work.Add(1)
	defer s.work.Done()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	work(ctx)
}

// playable reports whether the schedules of a strategy can be played here, or refuses the request.
func (s *server) playable(w http.ResponseWriter, strategy string) bool {
	if _, err := shopclient.Pick(s.lab.Strategies, []string{strategy}); err != nil {
		refuse(w, http.StatusUnprocessableEntity, &InputError{"strategies", err.Error()})
		return false
	}
	return true
}

func answerPlayed(w http.ResponseWriter, played any, err error) {
	switch {
	case errors.Is(err, step.ErrSchedule):
		refuse(w, http.StatusUnprocessableEntity, err)
	case err != nil:
		refuse(w, http.StatusInternalServerError, fmt.Errorf("it could not be played: %w", err))
	default:
		answerJSON(w, http.StatusOK, played)
	}
}

// getSource answers a file whose lines a Position names.
func getSource(w http.ResponseWriter, r *http.Request) {
	text, err := teaching.Source(r.PathValue("path"))
	if err != nil {
		refuse(w, http.StatusNotFound, errors.New("only the files of strategies, batches and wrong locks are shown"))
		return
	}
	answer(w, "text/plain; charset=utf-8", text)
}

// getReport answers the result of the last run, in one of three forms.
func (s *server) getReport(w http.ResponseWriter, r *http.Request) {
	last := s.last.Load()
	report, there := last.outcome()
	if !there || strconv.Itoa(last.id) != r.PathValue("id") {
		refuse(w, http.StatusNotFound, errors.New("only the report of the last run is kept"))
		return
	}
	var b bytes.Buffer
	var err error
	kind, form := "text/html; charset=utf-8", r.PathValue("form")
	switch form {
	case "result":
		err = execute(&b, "result", newView(report, r.FormValue("lang")))
	case "report.html":
		err = WriteReport(&b, report)
	case "report.json":
		kind, err = "application/json", report.WriteJSON(&b)
	default:
		refuse(w, http.StatusNotFound, errors.New("there are result, report.html and report.json"))
		return
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	if form != "result" {
		w.Header().Set("Content-Disposition", "attachment; filename="+form)
	}
	answer(w, kind, b.Bytes())
}

// decode reads JSON, or refuses the request.
func decode(w http.ResponseWriter, r *http.Request, into any) (ok bool) {
	if r.Header.Get("Content-Type") != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, errors.New("want JSON"))
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimit))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if misfit, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		refuse(w, http.StatusUnprocessableEntity, &InputError{misfit.Field, "want a whole number"})
	} else if err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("want JSON of a choice: %w", err))
	}
	return err == nil
}

// refuse answers an error, with its field if it is an InputError.
func refuse(w http.ResponseWriter, status int, err error) {
	problem, ofField := errors.AsType[*InputError](err)
	if !ofField {
		problem = &InputError{Text: err.Error()}
	}
	answerJSON(w, status, problem)
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that went away needs no answer
}

func answer(w http.ResponseWriter, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body) //nolint:gosec // HTML is escaped, the rest is of another type; a client that went away needs no answer
}
