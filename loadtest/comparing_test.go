package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"example.com/shop/internal/logs/logbook"
	"example.com/shop/loadtest/report"
)

// "Exit code: 0 if all of both runs could be compared and no verdict is worse than
// before, 1 if not, 2 if a file cannot be read or is no report of this version."
func TestRun_compare(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save := func(name string, change func(r *report.Report)) string {
		r := report.Report{Version: report.Version, Strategies: []report.Strategy{{Name: "redis", Verdict: "correct", OrdersPerSecond: 10}}}
		change(&r)
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	before := save("before", func(*report.Report) {})
	faster := save("faster", func(r *report.Report) { r.Strategies[0].OrdersPerSecond = 25 })
	worse := save("worse", func(r *report.Report) { r.Strategies[0].Verdict = "oversold" })
	larger := save("larger", func(r *report.Report) { r.Run.Buyers = 5 })
	later := save("later", func(r *report.Report) { r.Version = 9 })
	for _, c := range []struct {
		args []string
		code int
		want string // in either output
	}{
		{[]string{before, faster}, 0, "2.50"},
		{[]string{before, worse}, 1, "Worse than before: redis."},
		{[]string{before, larger}, 1, "buyers: 0 before, 5 after"},
		{[]string{before, later}, 2, later + ": not a report of --json of version 9"},
		{[]string{before, filepath.Join(dir, "none")}, 2, "no such file"},
		{[]string{before}, 2, "<after>"},
		{[]string{before, faster, worse}, 2, "worse"},
		{[]string{"--help"}, 0, "Exit code: 0 if all of both runs could be compared"},
	} {
		var out logbook.Book
		code := run(t.Context(), append([]string{"compare"}, c.args...), noEnv, &out, &out)
		if code != c.code || !out.Has(c.want) {
			t.Errorf("compare %v: got %d, want %d and %q in\n%s", c.args, code, c.code, c.want, out.String())
		}
	}
}
