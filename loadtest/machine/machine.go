package machine

import (
	"runtime"

	"example.com/shop/internal/app"
)

// Machine is what figures depend on. What is not known is empty.
type Machine struct {
	OS, Arch string
	CPUs     int    // that this process may use
	CPUModel string // as the maker calls it
	Go       string
	Commit   string // of this program, as app.Build has it
}

// Look returns the machine of this process.
func Look() Machine {
	return Machine{
		OS:       runtime.GOOS,
		Arch:     runtime.GOARCH,
		CPUs:     runtime.GOMAXPROCS(0),
		CPUModel: cpuModel(),
		Go:       runtime.Version(),
		Commit:   app.ThisBuild().Commit,
	}
}
