package report

import "time"

// Version is the form of reports that is written. A field more does not change it.
const Version = 1

// Report is one load test.
type Report struct {
	Version    int        `json:"version"` // of this form
	StartedAt  time.Time  `json:"started_at"`
	Machine    Machine    `json:"machine"`
	Run        Run        `json:"run"`
	Harness    *Harness   `json:"harness,omitempty"` // nil where it is not known
	Strategies []Strategy `json:"strategies"`
	NotRun     []NotRun   `json:"not_run"`
}

// NotRun is a strategy that was asked for among all and has had no race.
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

	// What the shop says that its servers are, such as MySQL 9.1.0.
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

// Strategy is the race of one strategy. Orders and units are the shop's books, over
// all SKUs; the other counts are the buyers', as are orders where they may be of
// several SKUs: the books count them for each. Cancelled orders are orders, their
// units are not sold.
type Strategy struct {
	Name              string    `json:"name"`
	PromisesCorrect   bool      `json:"promises_correct"`
	Lesson            string    `json:"lesson"`
	SKU               string    `json:"sku"` // the most wanted
	Supplied          int64     `json:"supplied"`
	Orders            int64     `json:"orders"`
	UnitsSold         int64     `json:"units_sold"`
	Oversold          int64     `json:"oversold"`
	Undersold         int64     `json:"undersold"`
	Acknowledged      int64     `json:"acknowledged"` // buyers who were told of an order
	Refused           int64     `json:"refused"`      // buyers who were told that it is sold out
	Errors            int64     `json:"errors"`       // buyers with another answer or none
	Unknown           int64     `json:"unknown"`      // of the errors, those who may have an order
	Unsent            int64     `json:"unsent"`       // of the errors, orders that found no buyer free to send them
	Retries           int64     `json:"retries"`      // requests beyond the first of each order, until it was answered
	Replays           int64     `json:"replays"`      // orders that were sent again and came out as the same one
	Cancelled         int64     `json:"cancelled"`    // orders that were placed and then cancelled
	Seconds           float64   `json:"seconds"`      // from the common start to the last answer
	OrdersPerSecond   float64   `json:"orders_per_second"`
	RefusalsPerSecond float64   `json:"refusals_per_second"`
	LatencyMS         LatencyMS `json:"latency_ms"`
	Waits             []Wait    `json:"waits"`
	Answers           Answers   `json:"answers"`
	Timeline          *Timeline `json:"timeline,omitempty"`  // nil if the shop tells no steps
	Locks             *Locks    `json:"locks,omitempty"`     // nil if there is no lock, or the shop tells no steps
	SKUs              []SKU     `json:"skus"`                // each by itself, the most wanted first
	Verdict           string    `json:"verdict"`             // the worst of theirs
	Findings          []string  `json:"findings"`            // what is wrong beside an oversale or undersale
	Notes             []string  `json:"notes"`               // what is worth knowing and not wrong
	CaughtIn          string    `json:"caught_in,omitempty"` // the scenario of step mode that a wrong one failed in, if its race did not catch it
}

// SKU is what came of one SKU of a race.
type SKU struct {
	SKU       string `json:"sku"`
	Supplied  int64  `json:"supplied"`
	Orders    int64  `json:"orders"`
	UnitsSold int64  `json:"units_sold"`
	Oversold  int64  `json:"oversold"`
	Undersold int64  `json:"undersold"`
	Refused   int64  `json:"refused"` // orders of this SKU alone
	Verdict   string `json:"verdict"`
}

// LatencyMS is how long buyers waited, in milliseconds from the moment their order
// was due: the common start, where all order at once.
type LatencyMS struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// The verdict of a race in which nothing is wrong.
const correct = "correct"

// Correct reports whether nothing was wrong.
func (s Strategy) Correct() bool { return s.Verdict == correct }

// Broken returns the names of strategies that promise to be correct and were
// not, or left buyers without an answer: whoever knows nothing is not served
// correctly, however well the books look.
func (r Report) Broken() []string {
	var names []string
	for _, s := range r.Strategies {
		if s.PromisesCorrect && (!s.Correct() || s.Errors > 0) {
			names = append(names, s.Name)
		}
	}
	return names
}

// Milliseconds returns d in milliseconds, to the microsecond.
func Milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}
