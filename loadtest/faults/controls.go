package faults

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/mail"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"example.com/shop/internal/testserver/overlay"
	"example.com/shop/loadtest/faults/system"
	"example.com/shop/loadtest/stats"
)

// tries is the number of histories in which a control must be found.
const tries = 200

// control is a mistake that the suite must catch: in the shop, or in the database behind it.
type control struct {
	name  string
	on    system.Kind // the servers
	fault string      // the fault under which the mistake shows
	about string
	patch string // of the shop's source; empty: the mistake is in the database
}

// timed are controls that only a check of a time finds, which a slow machine also breaks.
var timed = []string{ //nolint:gochecknoglobals // a table
	"leases-depended-on", "locked-row-awaited", "gap-awaited", "idle-transaction-kept", "migration-waits",
}

// patches has a mistake in each file. Above the patch, the file has a header: the mistake, the servers, and the fault.
//
//go:embed controls/*.patch
var patches embed.FS

// movableClock shifts time.Now by an environment variable. The monotonic clock, which measures durations, stays.
//
//go:embed movable-clock.patch
var movableClock string

// allControls returns the controls. Adding a control is adding a patch.
func allControls() []control {
	all := []control{
		{name: "asynchronous-replica", on: system.Replica, fault: "replica-promoted",
			about: "an asynchronous replica takes over from a killed MySQL"},
		{name: "commits-not-flushed", on: system.MySQL, fault: "mysql-killed-unflushed",
			about: "MySQL acknowledges commits before they are on disk, and is killed"},
	}
	files, _ := fs.Glob(patches, "controls/*") // an error means a wrong pattern
	for _, file := range files {
		text, err := patches.ReadFile(file)
		if err != nil {
			panic(err)
		}
		patch, err := mail.ReadMessage(bytes.NewReader(text))
		if err != nil {
			panic(fmt.Errorf("%s: %w", file, err))
		}
		all = append(all, control{
			name: strings.TrimSuffix(path.Base(file), ".patch"), on: system.Kind(patch.Header.Get("Servers")),
			fault: patch.Header.Get("Fault"), about: patch.Header.Get("Mistake"), patch: string(text),
		})
	}
	return all
}

// controlsNamed returns the controls with these names or, without names, all controls for which there are servers.
func (c *Command) controlsNamed(names []string) (found []control, err error) {
	for _, control := range allControls() {
		named := slices.Contains(names, control.name)
		if named && !c.has(control.on) {
			return nil, fmt.Errorf("%s needs servers: add --servers docker", control.name)
		}
		if named || len(names) == 0 && c.has(control.on) {
			found = append(found, control)
		}
	}
	if len(names) > 0 && len(found) != len(names) {
		return nil, fmt.Errorf("%.200q: want names of controls, each once; 'faults list' lists the controls", names)
	}
	return found, nil
}

// findAll looks for each control: it runs at most tries histories with the mistake, until one has a violation.
func (c *Command) findAll(ctx context.Context, progress func(string), controls []control, tries int, out io.Writer) error {
	var rows []table.Row
	missed := false
	for _, control := range controls {
		progress("looking for " + control.name)
		found, err := c.find(ctx, progress, control, tries)
		if err != nil {
			return fmt.Errorf("control %s: %w", control.name, cmp.Or(ctx.Err(), err))
		}
		missed = missed || found == ""
		found = cmp.Or(found, fmt.Sprintf("NOT FOUND in %d", tries))
		rows = append(rows, table.Row{control.name, control.fault, found})
		progress(control.name + ": " + found)
	}
	_, err := fmt.Fprint(out, stats.Table(table.Row{"control", "under", ""}, rows, 1, 0))
	if err == nil && missed {
		err = ErrBroken
	}
	return err
}

// find returns the number of histories until the mistake was found and the checks that found it, or "" if none did.
func (c *Command) find(ctx context.Context, progress func(string), wrong control, tries int) (found string, err error) {
	r := newRunner(progress)
	r.mistake = wrong
	defer func() { err = errors.Join(err, r.close()) }()
	f, _ := faultNamed(wrong.fault)
	f.on = wrong.on
	for n := range tries {
		h, err := r.runHistory(ctx, f, c.Seed+uint64(n))
		if err != nil {
			return "", err
		}
		var by []string
		for _, v := range h.Violations {
			slow := v.Check == "recovery" || (v.Check == "waits" || v.Check == "sales") && !slices.Contains(timed, wrong.name)
			if !slow && !slices.Contains(by, v.Check) {
				progress(fmt.Sprintf("%s: %s", v.Check, v.Detail))
				by = append(by, v.Check)
			}
		}
		if by != nil {
			return fmt.Sprintf("found after %d: %s", n+1, strings.Join(by, ", ")), nil
		}
	}
	return "", nil
}

// sources returns the changed source files: the shop's with the mistake in a patch, empty for none, and Go's if clocks
// must be movable.
func sources(ctx context.Context, patch string, clocksApart bool) (overlay.Overlay, error) {
	found, err := exec.CommandContext(ctx, "go", "env", "GOMOD", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find the sources: %w", err)
	}
	module, goroot, _ := strings.Cut(strings.TrimSpace(string(found)), "\n")
	changed := overlay.Overlay{}
	if patch != "" {
		err = changed.Apply(filepath.Dir(module), patch)
	}
	if err == nil && clocksApart {
		err = changed.Apply(filepath.Join(goroot, "src"), movableClock)
	}
	return changed, err
}
