package faults

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
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

// control is a mistake that the suite must catch: in the shop, in its clients, or in the database behind it.
type control struct {
	name  string
	on    system.Kind // the servers
	fault string      // the fault under which the mistake shows
	about string
	edits edits // of the shop's source; nil: the mistake is not in the shop
}

// edits are changes of source files. Each old text occurs exactly once in its file.
type edits []edit

type edit struct{ file, old, new string }

// keyForgotten is a control that needs more than its edits: the clients make the mistake.
const keyForgotten = "retry-without-key"

// timed are controls that only a check of a time finds, which a slow machine also breaks.
var timed = []string{ //nolint:gochecknoglobals // a table
	"leases-depended-on", "locked-row-awaited", "gap-awaited", "idle-transaction-kept", "migration-waits",
}

//go:embed controls.txt
var controlsText string

// allControls returns the controls of controls.txt. Adding a control is adding a paragraph.
func allControls() (all []control) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(controlsText), "\n\n") {
		parts := strings.Split(paragraph, "\n@ ")
		title, about, _ := strings.Cut(parts[0], "\n")
		if strings.HasPrefix(title, "#") {
			continue
		}
		words := strings.Fields(title)
		c := control{name: words[0], on: system.Kind(words[1]), fault: words[2], about: about}
		for _, part := range parts[1:] {
			file, texts, _ := strings.Cut(part, "\n-")
			before, after, _ := strings.Cut(texts, "\n+")
			c.edits = append(c.edits, edit{file, strings.ReplaceAll(before, "\n-", "\n"), strings.ReplaceAll(after, "\n+", "\n")})
		}
		all = append(all, c)
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

// movableClock shifts time.Now by an environment variable. The monotonic clock, which measures durations, stays.
func movableClock() edits {
	const now, local = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n", "func initLocal() {\n"
	const read = "var ahead = func() int64 {\n\ttext, _ := syscall.Getenv(\"" + system.ClockVariable + "\")\n\tn, _ := atoi(text)\n\treturn int64(n)\n}()\n\n"
	return edits{{"time/time.go", now, now + "\tsec += ahead\n"}, {"time/zoneinfo_unix.go", local, read + local}}
}

// change returns the changed text of each source file that the edits are about.
func change(ctx context.Context, changes edits) (overlay.Overlay, error) {
	found, err := exec.CommandContext(ctx, "go", "env", "GOMOD", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find the sources: %w", err)
	}
	module, goroot, _ := strings.Cut(strings.TrimSpace(string(found)), "\n")
	changed := overlay.Overlay{}
	for _, e := range changes {
		file := filepath.Join(filepath.Dir(module), e.file)
		if strings.HasPrefix(e.file, "time/") {
			file = filepath.Join(goroot, "src", e.file)
		}
		if err := changed.Edit(file, e.old, e.new); err != nil {
			return nil, err
		}
	}
	return changed, nil
}
