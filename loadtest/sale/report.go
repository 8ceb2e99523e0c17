package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"example.com/shop/loadtest/machine"
	"example.com/shop/loadtest/sale/load"
)

// report is the run as JSON. Durations are in milliseconds, processor time is a
// part of the machine's.
type report struct {
	Run     string        `json:"run"` // begins the names of its SKUs and buyers
	Machine machineReport `json:"machine"`
	Started time.Time     `json:"started"`
	Rounds  int           `json:"rounds"`
	TimeMS  float64       `json:"time_ms"`            // for each strategy in each round
	LeftOut []string      `json:"left_out,omitempty"` // strategies, and why
	Cases   []*caseReport `json:"cases"`
}

type machineReport struct {
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	OS       string `json:"os"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
	Commit   string `json:"commit,omitempty"`
	Load     string `json:"load"` // before the run: over 1, 5 and 15 minutes
	Database string `json:"database"`
	Redis    string `json:"redis"`
}

type caseReport struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Rows  []*row `json:"rows"`

	byDelay, grows bool
}

type row struct {
	Name   string  `json:"name"`
	Buyers int     `json:"buyers"`
	Rounds []round `json:"rounds"`
}

type round struct {
	OrdersPerSecond   float64 `json:"orders_per_second"`
	RefusalsPerSecond float64 `json:"refusals_per_second"`
	P50               float64 `json:"p50_ms"`
	P99               float64 `json:"p99_ms"`
	Longest           float64 `json:"longest_ms"`
	Orders            int64   `json:"orders"`
	Refusals          int64   `json:"refusals"`
	Errors            int64   `json:"errors"`
	FirstError        string  `json:"first_error,omitempty"`
	Client            float64 `json:"client_cpu"`
	Shops             float64 `json:"shops_cpu"`
	IdleBytes         int64   `json:"idle_bytes,omitempty"`
	PeakBytes         int64   `json:"peak_bytes,omitempty"`
	Wrong             string  `json:"wrong,omitempty"`
}

func newReport(f flags) *report {
	m, now := machine.Look(), time.Now().UTC()
	return &report{
		Run: "sale-" + now.Format("150405"), Started: now, Rounds: f.Rounds, TimeMS: ms(f.Time),
		Machine: machineReport{
			CPU: m.CPUModel, Cores: m.CPUs, OS: m.OS + "/" + m.Arch, Go: m.Go, Commit: m.Commit,
			Kernel: words("/proc/sys/kernel/osrelease", 1), Load: words("/proc/loadavg", 3),
		},
	}
}

func newRound(c load.Counts) round {
	r := round{
		OrdersPerSecond: c.OrdersPerSecond, RefusalsPerSecond: c.RefusalsPerSecond,
		P50: ms(c.P50), P99: ms(c.P99), Longest: ms(c.Longest),
		Orders: c.Orders, Refusals: c.Refusals, Errors: c.Errors,
	}
	if c.First != nil {
		r.FirstError = c.First.Error()
	}
	return r
}

// save writes the report to the file, to stdout if that is "-", or not at all.
func (r *report) save(file string, stdout io.Writer) error {
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

// head says what the figures depend on.
func (r *report) head(out io.Writer) {
	m := r.Machine
	fmt.Fprintf(out, "%s, %d cores, %s, kernel %s, %s; load before the run %s\n", m.CPU, m.Cores, m.OS, m.Kernel, m.Go, m.Load)
	fmt.Fprintf(out, "database: %s\nredis: %s\n", m.Database, m.Redis)
	fmt.Fprintf(out, "%d shop processes; rounds: %d, with %v for each strategy\n", instances, r.Rounds, time.Duration(r.TimeMS*float64(time.Millisecond)))
	for _, who := range r.LeftOut {
		fmt.Fprintf(out, "left out: %s\n", who)
	}
}

func words(file string, n int) string {
	text, err := os.ReadFile(file) //nolint:gosec // named by this file
	if err != nil {
		return "unknown"
	}
	all := strings.Fields(string(text))
	return strings.Join(all[:min(n, len(all))], " ")
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
