package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/lab"
	"example.com/shop/internal/order"
)

// Lab is teaching mode: requests choose a strategy, and can be traced, recorded and
// stopped.
type Lab struct {
	Offers          []order.Offer // that Shop-Strategy may name, the default first
	Recorder        *lab.Recorder
	Database, Redis string // names and versions, such as "MySQL 9.1.0"
}

const howToSwitchOn = "start the shop with `shop serve --lab`"

// lesson reads the headers by which a request chooses how its order is sold.
func (a *api) lesson(c *gin.Context) (strategy string, think time.Duration, err error) {
	if strategy, err = a.labHeader(c, "Shop-Strategy"); err != nil {
		return "", 0, err
	}
	text, err := a.labHeader(c, "Shop-Think")
	if err != nil || text == "" {
		return strategy, 0, err
	}
	if think, err = time.ParseDuration(text); err != nil {
		return "", 0, fmt.Errorf("%w: Shop-Think %.40q: want a duration such as 2ms, at most %v", errMalformed, text, order.MaxThink)
	}
	return strategy, think, nil
}

// labHeader returns the value of a header of teaching mode, empty if it is absent.
func (a *api) labHeader(c *gin.Context, name string) (string, error) {
	value, given, err := header(c, name)
	switch {
	case err != nil || !given:
		return "", err
	case a.Lab == nil:
		return "", fmt.Errorf("%w: leave out %s, or %s", errLabHeader, name, howToSwitchOn)
	case value == "":
		return "", fmt.Errorf("%w: header %s is empty", errMalformed, name)
	}
	return value, nil
}

// strategy names how an order is sold.
func (a *api) strategy(r *order.Request) string {
	if r.Strategy == "" && len(a.Lab.Offers) > 0 {
		return a.Lab.Offers[0].Name
	}
	return r.Strategy
}

func skusOf(r order.Request) []string {
	return mapped(r.Lines, func(l order.RequestLine) string { return l.SKU })
}

// record returns the context with which to place an order: in teaching mode with a trace,
// which is recorded if the request asks for that by Shop-Tape; nil elsewhere.
func (a *api) record(c *gin.Context, r order.Request) (context.Context, *lab.Trace, error) {
	name, err := a.labHeader(c, "Shop-Tape")
	if err != nil {
		return nil, nil, err
	}
	stop, err := a.labHeader(c, "Shop-Stop")
	switch {
	case err != nil:
		return nil, nil, err
	case a.Lab == nil:
		return c.Request.Context(), nil, nil
	case name == "" && stop != "":
		return nil, nil, fmt.Errorf("%w: header Shop-Stop needs Shop-Tape, by which to resume", errMalformed)
	}
	return a.Lab.Recorder.Begin(c.Request.Context(), lab.Request{Name: name, Stop: stop, SKUs: skusOf(r)})
}

// listStrategies answers GET /v1/strategies.
func (a *api) listStrategies(c *gin.Context) (int, any, error) {
	if a.Lab == nil {
		return 0, nil, fmt.Errorf("%w: %s %s is there only in teaching mode, %s", errLabOff, c.Request.Method, c.FullPath(), howToSwitchOn)
	}
	return http.StatusOK, strategiesJSON{
		Strategies: mapped(a.Lab.Offers, offerToJSON),
		Database:   a.Lab.Database,
		Redis:      a.Lab.Redis,
	}, nil
}

type strategiesJSON struct {
	Strategies []strategyJSON `json:"strategies"` // the default first
	Database   string         `json:"database"`
	Redis      string         `json:"redis"`
}

type strategyJSON struct {
	Name            string `json:"name"`
	Lock            string `json:"lock"` // empty for none
	Take            string `json:"take"`
	PromisesCorrect bool   `json:"promises_correct"`
	Lesson          string `json:"lesson"`
	Available       bool   `json:"available"`
	Reason          string `json:"reason,omitempty"` // why it is not
}

func offerToJSON(o order.Offer) strategyJSON {
	return strategyJSON{
		Name: o.Name, Lock: o.Lock, Take: o.Take, PromisesCorrect: o.Designed, Lesson: o.Lesson,
		Available: o.Missing == "", Reason: o.Missing,
	}
}

// getTape answers GET /v1/tapes/{tape}.
func (a *api) getTape(c *gin.Context) (int, any, error) {
	seen, text := 0, c.Query("seen")
	if text != "" {
		var err error
		if seen, err = strconv.Atoi(text); err != nil || seen < 0 {
			return 0, nil, fmt.Errorf("%w: seen %.20q: want the version of a tape, 0 or more", errMalformed, text)
		}
	}
	return a.showTape(c, seen)
}

// resumeTape answers POST /v1/tapes/{tape}/resume.
func (a *api) resumeTape(c *gin.Context) (int, any, error) {
	if err := wantNoBody(c); err != nil {
		return 0, nil, err
	}
	if err := a.Lab.Recorder.Resume(c.Param("tape")); err != nil {
		return 0, nil, err
	}
	return a.showTape(c, -1)
}

func (a *api) showTape(c *gin.Context, seen int) (int, any, error) {
	name := c.Param("tape")
	now, err := a.Lab.Recorder.Look(c.Request.Context(), name, seen)
	return http.StatusOK, tapeJSON{
		Tape: name, State: now.State, Version: now.Version,
		Events: mapped(now.Events, func(e lab.Event) eventJSON {
			return eventJSON{At: e.At.UnixMicro(), Kind: e.Kind, Text: e.Text, Answer: e.Answer}
		}),
	}, err
}

type tapeJSON struct {
	Tape    string      `json:"tape"`
	State   string      `json:"state"`
	Version int         `json:"version"`
	Events  []eventJSON `json:"events"`
}

type eventJSON struct {
	At     int64  `json:"at"` // microseconds since 1970
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Answer string `json:"answer,omitempty"`
}
