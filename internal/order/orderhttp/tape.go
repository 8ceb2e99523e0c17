package orderhttp

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
	"example.com/shop/internal/tape"
)

// watch returns the context with which to place an order: in teaching mode with a
// trace, and with a tape if the request asks for one. Call end when it is answered.
func (a *api) watch(c *gin.Context, r order.Request) (ctx context.Context, trace *order.Trace, end func(), err error) {
	ctx, end = c.Request.Context(), func() {}
	name, err := a.labHeader(c, headerTape)
	if err != nil {
		return nil, nil, nil, err
	}
	stop, err := a.labHeader(c, headerStop)
	if err != nil {
		return nil, nil, nil, err
	}
	switch {
	case !a.Lab:
		return ctx, nil, end, nil
	case name == "" && stop != "":
		return nil, nil, nil, fmt.Errorf("%w: header %s needs %s, by which to resume", errMalformed, headerStop, headerTape)
	case name == "":
		ctx, trace = order.WithTrace(ctx)
		return ctx, trace, end, nil
	}
	ctx, recorded, err := a.Tapes.Record(ctx, tape.Request{Name: name, Stop: stop, SKUs: skusOf(r)})
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, trace = order.WithTraceTo(ctx, func(ctx context.Context, s order.Step) {
		recorded.Step(ctx, s.Name, unitsOf(s))
	})
	return ctx, trace, recorded.End, nil
}

func skusOf(r order.Request) []string {
	var skus []string
	for _, line := range r.Lines {
		skus = append(skus, line.SKU)
	}
	return skus
}

func unitsOf(s order.Step) string {
	switch {
	case !s.Known:
		return ""
	case s.Units == 1:
		return "1 unit"
	}
	return strconv.FormatInt(s.Units, 10) + " units"
}

// getTape answers GET /v1/tapes/{tape}.
func (a *api) getTape(c *gin.Context) {
	seen, text := 0, c.Query("seen")
	if text != "" {
		var err error
		if seen, err = strconv.Atoi(text); err != nil || seen < 0 {
			a.fail(c, fmt.Errorf("%w: seen %.20q: want the version of a tape, 0 or more", errMalformed, text))
			return
		}
	}
	a.showTape(c, seen)
}

// resume answers POST /v1/tapes/{tape}/resume.
func (a *api) resume(c *gin.Context) {
	if err := wantNoBody(c); err != nil {
		a.fail(c, err)
		return
	}
	if err := a.Tapes.Resume(c.Param("tape")); err != nil {
		a.fail(c, err)
		return
	}
	a.showTape(c, -1)
}

func (a *api) showTape(c *gin.Context, seen int) {
	name := c.Param("tape")
	now, err := a.Tapes.Look(c.Request.Context(), name, seen)
	if err != nil {
		a.fail(c, err)
		return
	}
	shown := tapeJSON{Tape: name, State: now.State, Version: now.Version, Events: make([]eventJSON, len(now.Events))}
	for i, e := range now.Events {
		shown.Events[i] = eventJSON{At: e.At.UnixMicro(), Kind: e.Kind, Text: e.Text, Answer: e.Answer}
	}
	a.answer(c, http.StatusOK, shown)
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
