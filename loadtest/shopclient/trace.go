package shopclient

import (
	"strconv"
	"strings"
	"time"
)

// Trace is when a request took which step, by the shop's clock. Steps that it did
// not take are zero; of one that it took again, it is the last time. It has read the
// stock, or committed without: a lane may.
type Trace struct {
	Begun, LockAsked, LockHeld, Read, Writing, Written, Committed, Released time.Time

	Seen  int64  // units that it read as available
	Wrote *int64 // units that it wrote back; nil where the database subtracts
}

// parseTrace reads a Shop-Trace about the SKU of the first line. It returns nil if
// there is none, or none that says what came of it: it is a picture's matter, not an
// error.
func parseTrace(header string, lines []Line) *Trace {
	var t Trace
	sku := ""
	if len(lines) > 1 { // or there is no other
		sku = lines[0].SKU
	}
	steps := map[string]*time.Time{
		"begun": &t.Begun, "lock-asked": &t.LockAsked, "lock-held": &t.LockHeld, "read": &t.Read,
		"writing": &t.Writing, "written": &t.Written, "committed": &t.Committed, "released": &t.Released,
	}
	for _, step := range strings.Split(header, ",") {
		name, parameters, _ := strings.Cut(strings.TrimSpace(step), ";")
		at, known := steps[name]
		if !known || !about(parameters, sku) {
			continue
		}
		for _, parameter := range strings.Split(parameters, ";") {
			key, value, _ := strings.Cut(parameter, "=")
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case err != nil:
			case key == "at":
				*at = time.UnixMicro(n)
			case key == "units" && name == "read":
				t.Seen = n
			case key == "units" && name == "written":
				t.Wrote = &n
			}
		}
	}
	if t.Begun.IsZero() || t.Read.IsZero() && t.Committed.IsZero() {
		return nil
	}
	return &t
}

// about reports whether a step is of this SKU, or of the whole order. The empty
// SKU stands for the only one.
func about(parameters, sku string) bool {
	if sku == "" {
		return true
	}
	for _, parameter := range strings.Split(parameters, ";") {
		if name, named := strings.CutPrefix(parameter, "sku="); named {
			return name == sku
		}
	}
	return true
}
