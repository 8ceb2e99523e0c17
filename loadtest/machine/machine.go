// Package machine says what a load test runs on and what it uses, and makes room for
// its connections.
package machine

import (
	"os"
	"runtime"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/process"

	"example.com/shop/internal/app"
)

// Machine is what figures depend on. What is not known is empty.
type Machine struct {
	OS, Arch string
	CPUs     int    // that this process may use
	CPUModel string // as the maker calls it
	Go       string
	Commit   string // of this program
}

// Look returns the machine of this process.
func Look() Machine {
	m := Machine{
		OS:     runtime.GOOS,
		Arch:   runtime.GOARCH,
		CPUs:   runtime.GOMAXPROCS(0),
		Go:     runtime.Version(),
		Commit: app.ThisBuild().Commit,
	}
	if all, err := cpu.Info(); err == nil && len(all) > 0 {
		m.CPUModel = all[0].ModelName
	}
	return m
}

// CPU returns the processor time of this process since its start; 0 if it is not known.
func CPU() time.Duration {
	p, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		return 0
	}
	used, err := p.Times()
	if err != nil {
		return 0
	}
	return time.Duration((used.User + used.System) * float64(time.Second))
}

// Memory returns the most memory that this process has had from the system, in bytes,
// without that of its program file.
func Memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}
