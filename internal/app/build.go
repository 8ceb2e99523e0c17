package app

import "runtime/debug"

// Build is what a program knows of its own making. What is not known is empty:
// `go run` leaves the commit out.
type Build struct {
	Version string
	Commit  string // ends in "+changes" if it was built from changed files
}

// ThisBuild returns that of the running program.
func ThisBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) Build {
	b := Build{Version: info.Main.Version}
	changes := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changes = "+changes"
		}
	}
	if b.Commit != "" {
		b.Commit += changes
	}
	return b
}
