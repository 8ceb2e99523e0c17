package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"unicode"

	"example.com/shop/loadtest/report"
)

// Limits of a report. The largest that the load test writes are far below.
const (
	maxSize       = 16 << 20
	maxStrategies = 100
	maxText       = 200
)

// ErrReport means that a file is no report that can be compared.
var ErrReport = errors.New("not a report of --json")

// Read returns the report in a file, or an error that names the file and what is
// wrong with it.
func Read(file string) (report.Report, error) {
	r, err := read(file)
	if err != nil {
		return report.Report{}, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

func read(file string) (r report.Report, err error) {
	// Opening a pipe would wait for whoever writes into it.
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return r, cause(err)
	case !info.Mode().IsRegular():
		return r, fmt.Errorf("%w: it is no regular file", ErrReport)
	case info.Size() > maxSize:
		return r, fmt.Errorf("%w: it is longer than %d MB", ErrReport, maxSize>>20)
	}
	f, err := os.Open(file) //nolint:gosec // the user names it
	if err != nil {
		return r, cause(err)
	}
	defer f.Close()
	return Decode(f)
}

// cause is the error without the name of the file, which stands before it.
func cause(err error) error {
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}

// Decode returns the one report that in consists of.
func Decode(in io.Reader) (r report.Report, err error) {
	text, err := io.ReadAll(io.LimitReader(in, maxSize+1))
	if err != nil {
		return r, err
	}
	if len(text) > maxSize {
		return r, fmt.Errorf("%w: it is longer than %d MB", ErrReport, maxSize>>20)
	}
	var form struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(text, &form); err != nil {
		return r, fmt.Errorf("%w: %w", ErrReport, err)
	}
	switch {
	case form.Version == nil:
		return r, fmt.Errorf("%w: it has no version", ErrReport)
	case *form.Version != report.Version:
		return r, fmt.Errorf("%w of version %d: this one knows version %d alone", ErrReport, *form.Version, report.Version)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrReport, err)
	}
	if problem := check(r); problem != "" {
		return report.Report{}, fmt.Errorf("%w: %s", ErrReport, problem)
	}
	return r, nil
}

// check says what cannot be, of all that is compared or shown.
func check(r report.Report) string {
	if n := len(r.Strategies); n == 0 || n > maxStrategies {
		return fmt.Sprintf("it has %d strategies, want 1 to %d", n, maxStrategies)
	}
	seen := map[string]bool{}
	for i, s := range r.Strategies {
		numbers := []float64{s.OrdersPerSecond, s.RefusalsPerSecond, s.LatencyMS.P50, s.LatencyMS.P99}
		switch {
		case s.Name == "" || !plain(s.Name):
			return fmt.Sprintf("strategy %d has no name that can be shown", i+1)
		case seen[s.Name]:
			return fmt.Sprintf("strategy %s is there twice", s.Name)
		case !slices.Contains(verdicts(), s.Verdict):
			return fmt.Sprintf("strategy %s: its verdict is none of %s", s.Name, strings.Join(verdicts(), ", "))
		case slices.ContainsFunc(numbers, func(n float64) bool { return n < 0 || n > math.MaxInt32 }):
			return fmt.Sprintf("strategy %s: a rate or a time is out of range", s.Name)
		}
		seen[s.Name] = true
	}
	for _, f := range facts(r) {
		if !plain(f.value) {
			return fmt.Sprintf("its %s cannot be shown", f.name)
		}
	}
	if !plain(r.Machine.Commit) || !plain(r.Machine.Go) || !plain(r.Run.Target) {
		return "its commit, Go version or target cannot be shown"
	}
	return ""
}

// verdicts are the words there are, the best first.
func verdicts() []string { return []string{"correct", "undersold", "inconsistent", "oversold"} }

// plain reports whether a terminal shows the text and does nothing else with it.
func plain(s string) bool {
	return len(s) <= maxText && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
