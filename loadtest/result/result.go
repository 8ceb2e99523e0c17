// Package result holds the results of a load test: one model for the terminal, the page and JSON.
package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"

	"example.com/shop/internal/app"
	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/verdict"
)

// Version is the version of the JSON. An added field does not change it.
const Version = 5

// Report is one load test.
type Report struct {
	Version    int        `json:"version"`
	StartedAt  time.Time  `json:"started_at"`
	Machine    Machine    `json:"machine"`
	Run        Run        `json:"run"`
	Strategies []Strategy `json:"strategies"`
	NotRun     []NotRun   `json:"not_run"`
}

// Strategy is the race of one strategy: the shop's description of it, what the crowd was told, and the judgement.
// Orders and units are the shop's books; the other counts are the buyers'.
type Strategy struct {
	shopclient.Strategy
	SKU       string `json:"sku"`
	Supplied  int64  `json:"supplied"`
	Orders    int64  `json:"orders"`
	UnitsSold int64  `json:"units_sold"`
	crowd.Summary
	verdict.Judgement
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
	CPUs     int    `json:"cpus"` // that this process may use
	CPUModel string `json:"cpu_model,omitempty"`
	Go       string `json:"go_version"`
	Commit   string `json:"commit,omitempty"`
	Database string `json:"database"`
	Redis    string `json:"redis"`

	// The servers as the shop names them, such as MySQL 9.1.0.
	DatabaseVersion string `json:"database_version,omitempty"`
	RedisVersion    string `json:"redis_version,omitempty"`
}

// ThisMachine returns the machine of this process, without servers.
func ThisMachine() Machine {
	_, commit := app.ThisBuild()
	m := Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Go: runtime.Version(), Commit: commit,
	}
	if all, err := cpu.Info(); err == nil && len(all) > 0 {
		m.CPUModel = all[0].ModelName
	}
	return m
}

// Run is what was asked for.
type Run struct {
	Buyers    int     `json:"buyers"`
	Stock     int64   `json:"stock"`
	Instances int     `json:"instances,omitempty"` // not known of a target
	Target    string  `json:"target,omitempty"`
	ThinkMS   float64 `json:"think_ms"`
	Seconds   float64 `json:"seconds,omitempty"` // for which each buyer ordered again and again; 0: each ordered once
	Command   string  `json:"command"`           // that repeats the run; passwords are left out
}

// Correct reports whether nothing was wrong.
func (s Strategy) Correct() bool { return s.Verdict == verdict.Correct }

// NotCaught reports whether a strategy that is broken on purpose looked correct.
func (s Strategy) NotCaught() bool { return s.Correct() && !s.Designed }

// Broken reports whether a strategy that is designed to be correct was not, or left buyers without an answer.
func (r Report) Broken() bool {
	return slices.ContainsFunc(r.Strategies, func(s Strategy) bool { return s.Designed && (!s.Correct() || s.Errors > 0) })
}

// WriteJSON writes r for programs.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Save writes a report to a file, or to stdout if its name is "-". Without a name it does nothing. If write fails, the file
// is as it was.
func Save(file string, stdout io.Writer, write func(io.Writer) error) error {
	var b bytes.Buffer
	if file == "" {
		return nil
	}
	err := write(&b)
	if err == nil && file == "-" {
		_, err = b.WriteTo(stdout)
	} else if err == nil {
		err = os.WriteFile(file, b.Bytes(), 0o644) //nolint:gosec // a report is no secret
	}
	if err != nil {
		return fmt.Errorf("save the report: %w", err)
	}
	return nil
}
