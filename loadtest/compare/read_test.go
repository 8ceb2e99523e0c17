package compare_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/shop/loadtest/compare"
	"example.com/shop/loadtest/report"
)

// example is a report as the load test writes it.
func example() report.Report {
	return report.Report{
		Version: report.Version,
		Machine: report.Machine{OS: "linux", Arch: "amd64", CPUs: 2, CPUModel: "Processeur à 2 cœurs", Database: "SQLite, embedded", Redis: "embedded", Go: "go1.26"},
		Run:     report.Run{Buyers: 1000, Stock: 100, Instances: 3, ThinkMS: 2},
		Strategies: []report.Strategy{
			{Name: "none", Verdict: "oversold", OrdersPerSecond: 800, LatencyMS: report.LatencyMS{P50: 200, P99: 400}},
			{Name: "redis", Verdict: "correct", OrdersPerSecond: 100, RefusalsPerSecond: 900, LatencyMS: report.LatencyMS{P50: 500, P99: 900}},
		},
	}
}

func encode(t *testing.T, r report.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// doc.go: "It is read up to a limit, of the one version that is known, and refused
// where it says what cannot be, or what a terminal could take for a command."
func TestDecode(t *testing.T) {
	t.Parallel()
	with := func(change func(r *report.Report)) string {
		r := example()
		change(&r)
		return string(encode(t, r))
	}
	for name, c := range map[string]struct{ text, want string }{
		"as written":       {with(func(*report.Report) {}), ""},
		"a field more":     {strings.Replace(with(func(*report.Report) {}), "{", `{"later": 1,`, 1), ""},
		"empty":            {"", "unexpected end of JSON input"},
		"cut":              {with(func(*report.Report) {})[:200], "unexpected end of JSON input"},
		"something behind": {with(func(*report.Report) {}) + "{}", "after top-level value"},
		"another program":  {`{"data": []}`, "it has no version"},
		"a list":           {`[]`, "cannot unmarshal array"},
		"a later version":  {with(func(r *report.Report) { r.Version = 2 }), "of version 2: this one knows version 1 alone"},
		"deep":             {strings.Repeat("[", 100_000), "exceeded max depth"},
		"no race":          {with(func(r *report.Report) { r.Strategies = nil }), "it has 0 strategies, want 1 to 100"},
		"too many":         {with(func(r *report.Report) { r.Strategies = make([]report.Strategy, 101) }), "it has 101 strategies"},
		"no name":          {with(func(r *report.Report) { r.Strategies[1].Name = "" }), "strategy 2 has no name"},
		"twice":            {with(func(r *report.Report) { r.Strategies[1].Name = "none" }), "strategy none is there twice"},
		"an escape":        {with(func(r *report.Report) { r.Strategies[0].Name = "\x1b[2Jnone" }), "strategy 1 has no name that can be shown"},
		"backwards":        {with(func(r *report.Report) { r.Machine.CPUModel = "\u202egnorw" }), "its CPU cannot be shown"},
		"a long commit":    {with(func(r *report.Report) { r.Machine.Commit = strings.Repeat("a", 201) }), "its commit, Go version or target cannot be shown"},
		"another verdict":  {with(func(r *report.Report) { r.Strategies[0].Verdict = "fine" }), "strategy none: its verdict is none of correct"},
		"negative":         {with(func(r *report.Report) { r.Strategies[0].OrdersPerSecond = -1 }), "strategy none: a rate or a time is out of range"},
		"huge":             {strings.Replace(with(func(*report.Report) {}), ": 800", ": 1e999", 1), "1e999"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := compare.Decode(strings.NewReader(c.text))
			if c.want == "" {
				if err != nil || len(got.Strategies) != 2 {
					t.Errorf("got %+v, %v, want the report", got, err)
				}
				return
			}
			if !errors.Is(err, compare.ErrReport) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrReport with %q", err, c.want)
			}
		})
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, long := filepath.Join(dir, "good.json"), filepath.Join(dir, "long.json")
	if err := os.WriteFile(good, encode(t, example()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, 17<<20); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		good: "", long: "longer than 16 MB", dir: "no regular file", filepath.Join(dir, "none"): "no such file",
	} {
		_, err := compare.Read(file)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), file+": ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

// No report, however it was made, stops the comparison by a panic or writes what a
// terminal could take for a command.
func FuzzDecode(f *testing.F) {
	var b bytes.Buffer
	if err := example().WriteJSON(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"version":1,"strategies":[{"name":"a","verdict":"correct"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := compare.Decode(bytes.NewReader(text))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := compare.Of(example(), r).Print(report.Printer{Out: &out}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\x07\r\u202e") {
			t.Errorf("a control character is in %q", out.String())
		}
	})
}
