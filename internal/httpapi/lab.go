package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/lab"
	"example.com/shop/internal/order"
)

// Lab configures teaching mode: requests choose a strategy, and can be traced, recorded and stopped.
type Lab struct {
	Offers          []order.Offer // the strategies that Shop-Strategy may name, the default first
	Recorder        *lab.Recorder
	Database, Redis string // names and versions, such as "MySQL 9.1.0"
}

const howToSwitchOn = "start the shop with `shop serve --lab`"

// readTeachingHeaders reads the headers by which a request chooses how its order is sold.
func (a *api) readTeachingHeaders(c *call, r *order.Request) (err error) {
	if a.Lab == nil {
		for _, name := range []string{"Shop-Strategy", "Shop-Think", "Shop-Tape", "Shop-Stop"} {
			if c.Request.Header[name] != nil {
				return fmt.Errorf("%w: leave out %s, or %s", errLabHeader, name, howToSwitchOn)
			}
		}
		return nil
	}
	r.Strategy = c.value("Shop-Strategy")
	if think := c.value("Shop-Think"); think != "" {
		if r.Think, err = time.ParseDuration(think); err != nil {
			return fmt.Errorf("%w: Shop-Think %.40q: want a duration such as 2ms, at most %v", errMalformed, think, order.MaxThink)
		}
	}
	return nil
}

// place places an order: in teaching mode with a trace, which is recorded if the request has a Shop-Tape.
func (a *api) place(c *call, r order.Request) (placed order.Order, replayed bool, err error) {
	if a.Lab == nil {
		return a.Orders.Place(c.Request.Context(), r)
	}
	stop := c.value("Shop-Stop")
	q := lab.Request{Name: c.value("Shop-Tape"), Step: stop == "each"}
	switch {
	case stop != "" && !q.Step:
		return placed, false, fmt.Errorf("%w: header Shop-Stop %.80q: want each", errMalformed, stop)
	case q.Step && q.Name == "":
		return placed, false, fmt.Errorf("%w: header Shop-Stop needs Shop-Tape, by which to step", errMalformed)
	}
	for _, line := range r.Lines {
		q.SKUs = append(q.SKUs, line.SKU)
	}
	ctx, trace, err := a.Lab.Recorder.Begin(c.Request.Context(), q)
	if err != nil {
		return placed, false, err
	}
	placed, replayed, err = a.Orders.Place(ctx, r)
	trace.End()
	if !replayed && (err == nil || errors.Is(err, order.ErrSoldOut)) {
		c.Header("Shop-Trace", trace.Header())
	}
	return placed, replayed, err
}

// listStrategies answers GET /v1/strategies.
func (a *api) listStrategies(c *call) (int, any, error) {
	if a.Lab == nil {
		return 0, nil, fmt.Errorf("%w: %s %s is there only in teaching mode, %s", errLabOff, c.Request.Method, c.FullPath(), howToSwitchOn)
	}
	all := make([]strategyJSON, len(a.Lab.Offers))
	for i, o := range a.Lab.Offers {
		all[i] = strategyJSON{o.Name, o.Lock, o.Take, o.Designed, o.Lesson, o.Missing == "", o.Missing}
	}
	return http.StatusOK, gin.H{"strategies": all, "database": a.Lab.Database, "redis": a.Lab.Redis}, nil
}

// strategyJSON is an order.Offer.
type strategyJSON struct {
	Name            string `json:"name"`
	Lock            string `json:"lock"` // empty for none
	Take            string `json:"take"`
	PromisesCorrect bool   `json:"promises_correct"`
	Lesson          string `json:"lesson"`
	Available       bool   `json:"available"`
	Reason          string `json:"reason,omitempty"` // why it is not
}

// getRecording answers GET /v1/tapes/{tape} as soon as the recording's version is higher than the one seen.
func (a *api) getRecording(c *call) (int, any, error) {
	seen, err := strconv.ParseUint(cmp.Or(c.Query("seen"), "0"), 10, 31)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: seen: want the version of a recording, 0 or more", errMalformed)
	}
	now, err := a.Lab.Recorder.Look(c.Request.Context(), c.Param("tape"), int(seen))
	return http.StatusOK, now, err
}

// getRecordingLock answers GET /v1/tapes/{tape}/lock.
func (a *api) getRecordingLock(c *call) (int, any, error) {
	state, err := a.Lab.Recorder.Holder(c.Request.Context(), c.Param("tape"))
	return http.StatusOK, state, err
}

// moveRecording answers POST /v1/tapes/{tape}/{move}.
func (a *api) moveRecording(c *call) (int, any, error) {
	if err := decode(c, new(noBody)); err != nil {
		return 0, nil, err
	}
	if err := a.Lab.Recorder.Do(c.Request.Context(), lab.Move(c.Param("move")), c.Param("tape")); err != nil {
		return 0, nil, err
	}
	return a.getRecording(c)
}
