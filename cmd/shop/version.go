package main

import (
	"cmp"
	"fmt"
	"runtime"

	"example.com/shop/internal/app"
)

type versionCommand struct{}

// Run prints the build's own account of itself.
func (versionCommand) Run(p *program) error {
	build := app.ThisBuild()
	_, err := fmt.Fprintf(p.stdout, "shop %s, commit %s, %s %s/%s\n",
		cmp.Or(build.Version, "unknown"), cmp.Or(build.Commit, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
