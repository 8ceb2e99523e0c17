package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/loadtest/shopclient"
)

// Limits of the server. It reads small forms from a browser on this machine.
const (
	bodyLimit    = 64 << 10
	readTimeout  = 5 * time.Second
	drainTimeout = 10 * time.Second
	playTimeout  = 2 * time.Minute // longer than any scenario takes
)

// server knows the last run, which may still go on.
type server struct {
	lab  Lab
	ctx  context.Context //nolint:containedctx // runs outlive the request that starts them
	runs sync.WaitGroup

	mu      sync.Mutex
	last    *run
	playing bool
}

// newServer returns a server whose last run is an empty one, so that there is always one.
func newServer(ctx context.Context, lab Lab) *server {
	before := newRun(ctx, 0, Choice{}, nil)
	before.phase = idle
	return &server{lab: lab, ctx: ctx, last: before}
}

// Serve serves the page at an address until ctx ends, which also ends a run. It reports where, before anything can be
// asked. When it returns, nothing of it runs any more.
//
// One run is held at a time, or one scenario played; a second request is refused (409). Nothing leaves the page's
// origin: its Content-Security-Policy forbids it. A request that changes something must be of the same origin, and the
// Host of each must be an address, localhost or the name that was listened on, so that no foreign name leads here.
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
		report("Anyone who can reach this address can start races on this machine.")
	}
	name, _, _ := net.SplitHostPort(address)
	group, ctx := errgroup.WithContext(ctx)
	s := newServer(ctx, lab)
	defer s.runs.Wait()
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

// ErrAddress means that an address cannot be listened on.
var ErrAddress = errors.New("want host:port such as 127.0.0.1:8090")

// Address returns an address as net.Listen wants it. Without a host it is this machine alone: a page without passwords
// is not for everybody by default. It returns an ErrAddress if it cannot be listened on.
func Address(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("%q: %w", address, ErrAddress)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", fmt.Errorf("%q: %w, with a port of 0 to 65535", address, ErrAddress)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
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
			refuse(w, http.StatusMisdirectedRequest, Problem{Text: "this is not the host that the lab listens on"})
			return
		}
		sameOrigin.ServeHTTP(w, r)
	})
}

// trusted reports whether a Host can only be meant for this server. The owner of a name can make it lead anywhere; an
// address cannot be redirected.
func trusted(host, name string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
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
	mux.HandleFunc("GET /events", s.getEvents)
	mux.HandleFunc("POST /run", s.postRun)
	mux.HandleFunc("POST /stop", s.postStop)
	mux.HandleFunc("POST /play", s.postPlay)
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
	for _, strategy := range s.lab.Strategies() {
		to := &groups[0]
		if strategy.PromisesCorrect {
			to = &groups[1]
		}
		to.Strategies = append(to.Strategies, strategy)
	}
	var home bytes.Buffer
	err := execute(&home, "home.html", map[string]any{"Groups": groups, "Defaults": s.lab.Defaults(), "Scenarios": s.lab.Scenarios()})
	if err != nil {
		refuse(w, http.StatusInternalServerError, Problem{Text: err.Error()})
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
		now, err := json.Marshal(s.latest().state())
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

// busy is the answer to a second run or play.
const busy = "the lab is busy already; wait until that is over, or stop it"

func (s *server) postRun(w http.ResponseWriter, r *http.Request) {
	var c Choice
	if !decode(w, r, &c) {
		return
	}
	chosen, problem := pick(s.lab.Strategies(), c.Strategies)
	if problem == nil {
		problem = s.lab.Check(c)
	}
	if problem != nil {
		refuse(w, http.StatusUnprocessableEntity, *problem)
		return
	}
	id := s.begin(c, chosen)
	if id == 0 {
		refuse(w, http.StatusConflict, Problem{Text: busy})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, `{"run":%d}`, id)
}

// begin starts a run and returns its number; 0 if something goes on already.
func (s *server) begin(c Choice, chosen []shopclient.Strategy) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.playing || !s.last.over() {
		return 0
	}
	r := newRun(s.ctx, s.last.id+1, c, chosen)
	s.last = r
	s.runs.Go(func() { r.hold(s.lab) })
	return r.id
}

func (s *server) latest() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// postStop returns at once; the events report when the run has ended.
func (s *server) postStop(w http.ResponseWriter, _ *http.Request) {
	s.latest().stop()
	w.WriteHeader(http.StatusNoContent)
}

// postPlay plays a scenario to its end, which takes seconds. It ends with the request.
func (s *server) postPlay(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Strategy string `json:"strategy"`
		Scenario string `json:"scenario"`
	}
	if !decode(w, r, &asked) {
		return
	}
	strategy, problem := s.checkPlay(asked.Strategy, asked.Scenario)
	if problem != nil {
		refuse(w, http.StatusUnprocessableEntity, *problem)
		return
	}
	s.mu.Lock()
	free := !s.playing && s.last.over()
	s.playing = s.playing || free
	s.mu.Unlock()
	if !free {
		refuse(w, http.StatusConflict, Problem{Text: busy})
		return
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.playing = false
	}()
	ctx, cancel := context.WithTimeout(r.Context(), playTimeout)
	defer cancel()
	play, err := s.lab.Play(ctx, strategy, asked.Scenario)
	var text []byte
	if err == nil {
		text, err = json.Marshal(play)
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, Problem{Text: "it could not be played: " + err.Error()})
		return
	}
	answer(w, "application/json", text)
}

func (s *server) checkPlay(name, scenario string) (strategy shopclient.Strategy, problem *Problem) {
	chosen, problem := pick(s.lab.Strategies(), []string{name})
	if problem != nil {
		return strategy, &Problem{"play-strategy", problem.Text}
	}
	all := s.lab.Scenarios()
	i := slices.IndexFunc(all, func(in Scenario) bool { return in.Name == scenario })
	if i < 0 {
		return strategy, &Problem{"play-scenario", "choose one"}
	}
	if why := all[i].Excuses[name]; why != "" {
		return strategy, &Problem{"play-scenario", why}
	}
	return chosen[0], nil
}

// getReport answers the result of the last run, in one of three forms.
func (s *server) getReport(w http.ResponseWriter, r *http.Request) {
	last := s.latest()
	report, there := last.outcome()
	if !there || strconv.Itoa(last.id) != r.PathValue("id") {
		refuse(w, http.StatusNotFound, Problem{Text: "only the report of the last run is kept"})
		return
	}
	var b bytes.Buffer
	var err error
	kind, form := "text/html; charset=utf-8", r.PathValue("form")
	switch form {
	case "result":
		err = execute(&b, "result", newView(report))
	case "report.html":
		err = WriteReport(&b, report)
	case "report.json":
		kind, err = "application/json", report.WriteJSON(&b)
	default:
		refuse(w, http.StatusNotFound, Problem{Text: "there are result, report.html and report.json"})
		return
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, Problem{Text: err.Error()})
		return
	}
	if form != "result" {
		w.Header().Set("Content-Disposition", "attachment; filename="+form)
	}
	answer(w, kind, b.Bytes())
}

// decode reads JSON, or refuses the request.
func decode(w http.ResponseWriter, r *http.Request, into any) (ok bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, Problem{Text: "want JSON"})
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimit))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var misfit *json.UnmarshalTypeError
	switch {
	case err == nil:
		return true
	case errors.As(err, &misfit):
		refuse(w, http.StatusUnprocessableEntity, Problem{misfit.Field, "want a whole number"})
	default:
		refuse(w, http.StatusBadRequest, Problem{Text: "want JSON of a choice: " + err.Error()})
	}
	return false
}

func refuse(w http.ResponseWriter, status int, p Problem) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p) // a client that went away needs no answer
}

func answer(w http.ResponseWriter, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body) // a client that went away needs no answer
}
