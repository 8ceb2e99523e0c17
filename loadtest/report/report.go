package report

import "time"

// Report is one load test.
type Report struct {
	StartedAt  time.Time  `json:"started_at"`
	Machine    Machine    `json:"machine"`
	Run        Run        `json:"run"`
	Strategies []Strategy `json:"strategies"`
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
}

// Run is what was asked for.
type Run struct {
	Buyers    int     `json:"buyers"`
	Stock     int64   `json:"stock"`
	Instances int     `json:"instances,omitempty"` // not known of a target
	Target    string  `json:"target,omitempty"`
	ThinkMS   float64 `json:"think_ms"`
}

// Strategy is the race of one strategy. Orders and units are the shop's books,
// the other counts are buyers.
type Strategy struct {
	Name              string    `json:"name"`
	PromisesCorrect   bool      `json:"promises_correct"`
	Lesson            string    `json:"lesson"`
	SKU               string    `json:"sku"`
	Supplied          int64     `json:"supplied"`
	Orders            int64     `json:"orders"`
	UnitsSold         int64     `json:"units_sold"`
	Oversold          int64     `json:"oversold"`
	Undersold         int64     `json:"undersold"`
	Acknowledged      int64     `json:"acknowledged"` // buyers who were told of an order
	Refused           int64     `json:"refused"`      // buyers who were told that it is sold out
	Errors            int64     `json:"errors"`       // buyers with another answer or none
	Unknown           int64     `json:"unknown"`      // of the errors, those who may have an order
	Retries           int64     `json:"retries"`      // requests beyond the first of each buyer
	Seconds           float64   `json:"seconds"`      // from the common start to the last answer
	OrdersPerSecond   float64   `json:"orders_per_second"`
	RefusalsPerSecond float64   `json:"refusals_per_second"`
	LatencyMS         LatencyMS `json:"latency_ms"`
	Verdict           string    `json:"verdict"`
	Findings          []string  `json:"findings"` // what is wrong beside an oversale or undersale
	Notes             []string  `json:"notes"`    // what is worth knowing and not wrong
}

// LatencyMS is how long buyers waited, in milliseconds from the common start.
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
