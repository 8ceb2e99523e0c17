package machine

import (
	"runtime"
	"runtime/debug"
)

// Machine is what figures depend on. What is not known is empty.
type Machine struct {
	OS, Arch string
	CPUs     int    // that this process may use
	CPUModel string // as the maker calls it
	Go       string
	Commit   string // of this program; ends in "+changes" if it was built from changed files
}

// Look returns the machine of this process.
func Look() Machine {
	return Machine{
		OS:       runtime.GOOS,
		Arch:     runtime.GOARCH,
		CPUs:     runtime.GOMAXPROCS(0),
		CPUModel: cpuModel(),
		Go:       runtime.Version(),
		Commit:   commit(),
	}
}

// commit is there in a built program; `go run` leaves it out.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var revision, changes string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changes = "+changes"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + changes
}
