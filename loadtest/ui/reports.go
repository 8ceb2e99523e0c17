package ui

import (
	"bytes"
	"mime"
	"net/http"
	"strconv"

	"example.com/shop/loadtest/report/page"
)

// getReport answers what came of the last run, in one of three forms.
func (s *server) getReport(w http.ResponseWriter, r *http.Request) {
	last := s.latest()
	if last == nil || strconv.Itoa(last.id) != r.PathValue("id") {
		refuse(w, http.StatusNotFound, Problem{Text: "only the report of the last run is kept"})
		return
	}
	told, there := last.outcome()
	if !there {
		refuse(w, http.StatusNotFound, Problem{Text: "this run has no report"})
		return
	}
	var b bytes.Buffer
	var err error
	kind := "text/html; charset=utf-8"
	switch form := r.PathValue("form"); form {
	case "result":
		err = page.WriteResult(&b, told)
	case "report.html":
		err = page.Write(&b, told)
		download(w, form)
	case "report.json":
		kind, err = "application/json", told.WriteJSON(&b)
		download(w, form)
	default:
		refuse(w, http.StatusNotFound, Problem{Text: "there are result, report.html and report.json"})
		return
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, Problem{Text: err.Error()})
		return
	}
	answer(w, kind, b.Bytes())
}

func download(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
}
