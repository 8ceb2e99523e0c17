package main

import (
	"encoding/json"
	"io"
	"os"
	"time"

	"example.com/shop/loadtest/peers/measure"
)

// report is the run as JSON. Durations are in milliseconds.
type report struct {
	Machine machine      `json:"machine"`
	Started time.Time    `json:"started"`
	Rounds  int          `json:"rounds"`
	Seconds float64      `json:"seconds"` // for each peer in each round
	Cases   []caseReport `json:"cases"`
}

type caseReport struct {
	Name      string       `json:"name"`
	About     string       `json:"about"`
	SleepLoop []float64    `json:"sleep_loop_per_second,omitempty"` // the ideal with a hold, by round
	Peers     []peerReport `json:"peers"`
}

// peerReport has a list entry for each round.
type peerReport struct {
	Name  string  `json:"name"`
	Turns []turns `json:"turns,omitempty"`
	Wakes []wake  `json:"wakes,omitempty"`
	Idle  *idle   `json:"idle,omitempty"`
}

type turns struct {
	Turns       int     `json:"turns"`
	PerSecond   float64 `json:"per_second"`
	LongestWait float64 `json:"longest_wait_ms"`
	Of          int     `json:"of"`   // how many clients, or goroutines of one client
	Most        int     `json:"most"` // turns of the one among them that got the most
	Least       int     `json:"least"`
	Overlaps    int64   `json:"overlaps"`
	Lost        int64   `json:"lost_updates"`
	Errors      int     `json:"errors"`
	FirstError  string  `json:"first_error,omitempty"`
	Hung        string  `json:"hung,omitempty"`
}

type wake struct {
	Samples    int     `json:"samples"`
	Woken      float64 `json:"woken_ms,omitempty"`
	WokenTrips float64 `json:"woken_round_trips,omitempty"`
	FromCall   float64 `json:"from_call_ms"`
	FromReturn float64 `json:"from_return_ms"`
	Ping       float64 `json:"ping_ms"`
	RoundTrips float64 `json:"round_trips"`
	Longest    float64 `json:"longest_ms"`
	Failed     string  `json:"failed,omitempty"`
}

type idle struct {
	Seconds float64        `json:"seconds"`
	Holder  map[string]int `json:"holder"`
	Waiter  map[string]int `json:"waiter"`
	Failed  string         `json:"failed,omitempty"`
}

func newTurns(c measure.Counts) turns {
	most, least := c.Fairness()
	return turns{
		Turns: c.Turns, PerSecond: c.PerSecond(), LongestWait: ms(c.LongestWait),
		Of: len(c.PerClient), Most: most, Least: least,
		Overlaps: c.Overlaps, Lost: c.Lost, Errors: c.Errors, FirstError: words(c.FirstError), Hung: words(c.Hung),
	}
}

func newWake(w measure.Wake) wake {
	failed := w.Failed
	if w.Hung != nil {
		failed = w.Hung
	}
	return wake{
		Samples: w.Samples, FromCall: ms(w.FromCall), FromReturn: ms(w.FromReturn), Ping: ms(w.Ping),
		Woken: ms(w.Woken), WokenTrips: w.RoundTrips(w.Woken), RoundTrips: w.RoundTrips(w.FromCall), Longest: ms(w.Longest), Failed: words(failed),
	}
}

func newIdle(i measure.Idle) *idle {
	return &idle{Seconds: i.Elapsed.Seconds(), Holder: i.Holder, Waiter: i.Waiter, Failed: words(i.Hung)}
}

// save writes the report to the file, to stdout if that is "-", or not at all.
func (r report) save(file string, stdout io.Writer) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if file == "-" {
		_, err = stdout.Write(text)
		return err
	}
	return os.WriteFile(file, text, 0o644) //nolint:gosec // a report is for everybody
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
