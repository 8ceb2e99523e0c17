package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

// Run prints the build's own account of itself.
func (versionCommand) Run(p *program) error {
	version, commit, changed := "unknown", "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				commit = setting.Value
			case setting.Key == "vcs.modified" && setting.Value == "true":
				changed = " with changes"
			}
		}
	}
	_, err := fmt.Fprintf(p.stdout, "shop %s, commit %s%s, %s %s/%s\n",
		version, commit, changed, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
