package ui

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"

	"example.com/shop/loadtest/report/page"
)

//go:embed static
var static embed.FS

// longest is more than any choice needs.
const longest = 64 << 10

// busy is what a second one is told.
const busy = "the lab is busy already; wait until that is over, or stop it"

func (s *server) routes() (http.Handler, error) {
	home, err := s.home()
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(static, "static")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { answer(w, "text/html; charset=utf-8", home) })
	mux.HandleFunc("GET /report.css", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "text/css; charset=utf-8", []byte(page.Style()))
	})
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(files)))
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("POST /run", s.postRun)
	mux.HandleFunc("POST /stop", s.postStop)
	mux.HandleFunc("POST /play", s.postPlay)
	mux.HandleFunc("GET /runs/{id}/{form}", s.getReport)
	return mux, nil
}

func (s *server) postRun(w http.ResponseWriter, r *http.Request) {
	var c Choice
	if status, problem := decode(w, r, &c); problem != nil {
		refuse(w, status, *problem)
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
	begun := newRun(c, chosen)
	if !s.begin(begun) {
		refuse(w, http.StatusConflict, Problem{Text: busy})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, `{"run":%d}`, begun.id)
}

// postStop returns at once; the page sees by the events when it has ended.
func (s *server) postStop(w http.ResponseWriter, _ *http.Request) {
	if r := s.latest(); r != nil {
		r.stop()
	}
	w.WriteHeader(http.StatusNoContent)
}

// decode reads JSON, or returns a status and what is wrong.
func decode(w http.ResponseWriter, r *http.Request, into any) (int, *Problem) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, &Problem{Text: "want JSON"}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, longest))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var misfit *json.UnmarshalTypeError
	var long *http.MaxBytesError
	switch {
	case err == nil:
		return http.StatusOK, nil
	case errors.As(err, &misfit):
		return http.StatusUnprocessableEntity, &Problem{misfit.Field, "want a whole number"}
	case errors.As(err, &long):
		return http.StatusRequestEntityTooLarge, &Problem{Text: "that is too long"}
	}
	return http.StatusBadRequest, &Problem{Text: "want JSON of a choice: " + err.Error()}
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
