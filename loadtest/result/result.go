// Package result is what came of a load test: one model for the terminal, the page,
// JSON and compare. Its types are those of the JSON, so that a saved report can be
// read back.
package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/verdict"
)

// Version is the version of the JSON. An added field does not change it.
const Version = 1

// Report is one load test.
type Report struct {
	Version    int        `json:"version"`
	StartedAt  time.Time  `json:"started_at"`
	Machine    Machine    `json:"machine"`
	Run        Run        `json:"run"`
	Harness    *Harness   `json:"harness,omitempty"` // nil where it is not known
	Strategies []Strategy `json:"strategies"`
	NotRun     []NotRun   `json:"not_run"`
}

// Strategy is the race of one strategy: the shop's description of it, what the crowd
// was told, and the judgement. Orders and units are the shop's books, over all SKUs;
// the other counts are the buyers', and so are orders of several SKUs, which the books
// count once for each. Cancelled orders are orders, their units are not sold.
type Strategy struct {
	shopclient.Strategy
	SKU       string `json:"sku"` // the most wanted
	Supplied  int64  `json:"supplied"`
	Orders    int64  `json:"orders"`
	UnitsSold int64  `json:"units_sold"`
	crowd.Summary
	verdict.Judgement
	SKUs     []verdict.SKU `json:"skus"`                // each by itself, the most wanted first
	CaughtIn string        `json:"caught_in,omitempty"` // the scenario of step mode that a wrong one failed in, if its race did not catch it
}

// NotRun is a strategy that had no race.
type NotRun struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Machine is what the figures depend on. What is not known is left out.
type Machine struct {
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPUs     int    `json:"cpus"`
	CPUModel string `json:"cpu_model,omitempty"`
	Go       string `json:"go_version"`
	Commit   string `json:"commit,omitempty"`
	Database string `json:"database"`
	Redis    string `json:"redis"`

	// The servers as the shop names them, such as MySQL 9.1.0.
	DatabaseVersion string `json:"database_version,omitempty"`
	RedisVersion    string `json:"redis_version,omitempty"`
}

// Run is what was asked for.
type Run struct {
	Buyers    int     `json:"buyers"`
	Stock     int64   `json:"stock"`
	Instances int     `json:"instances,omitempty"` // not known of a target
	Target    string  `json:"target,omitempty"`
	ThinkMS   float64 `json:"think_ms"`
	Command   string  `json:"command"` // that repeats the run; passwords are left out

	// What differs from buyers who want one unit of one SKU each, once and all at
	// the same moment; absent where it does not.
	Wanted   string  `json:"wanted,omitempty"`   // a sentence
	Rate     float64 `json:"rate,omitempty"`     // orders that were due per second
	Seconds  float64 `json:"seconds,omitempty"`  // for so long
	Requests int     `json:"requests,omitempty"` // orders in all
	SKUs     int     `json:"skus,omitempty"`
	Skew     float64 `json:"skew,omitempty"`
	Lines    int     `json:"lines,omitempty"`  // at most, in an order
	Cancel   float64 `json:"cancel,omitempty"` // share of the orders placed
	Retry    float64 `json:"retry,omitempty"`  // share of the orders placed

	// Together means that all strategies raced at the same time, which slows each.
	Together bool `json:"together,omitempty"`
}

// Harness is what the load test itself cost, while the races ran.
type Harness struct {
	CPUSeconds   float64 `json:"cpu_seconds"`
	CPUShare     float64 `json:"cpu_share"`      // of all that the machine's CPUs could do, 0 to 1
	PeakMemoryMB float64 `json:"peak_memory_mb"` // the most that the process has had since its start

	// WithShops means that the shops ran in the same process, and are in these figures.
	WithShops bool `json:"with_shops"`
}

// Correct reports whether nothing was wrong.
func (s Strategy) Correct() bool { return s.Verdict == verdict.Correct }

// NotCaught reports whether a strategy that is broken on purpose looked correct.
func (s Strategy) NotCaught() bool { return s.Correct() && !s.PromisesCorrect }

// Broken returns the names of strategies that are designed to be correct and were not,
// or left buyers without an answer.
func (r Report) Broken() []string {
	var names []string
	for _, s := range r.Strategies {
		if s.PromisesCorrect && (!s.Correct() || s.Errors > 0) {
			names = append(names, s.Name)
		}
	}
	return names
}

// WriteJSON writes r for programs.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// ErrReport means that a file is no report that can be read back.
var ErrReport = errors.New("not a report of --json")

// Decode reads the JSON of a report.
func Decode(text []byte) (Report, error) {
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrReport, err)
	}
	if r.Version != Version {
		return r, fmt.Errorf("%w of version %d: this program reads version %d alone", ErrReport, r.Version, Version)
	}
	if len(r.Strategies) == 0 {
		return r, fmt.Errorf("%w: it has no strategies", ErrReport)
	}
	return r, nil
}
