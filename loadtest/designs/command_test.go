package designs

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/testserver"
)

// run runs the command as package main does.
func run(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var grammar struct {
		Designs Command `cmd:""`
	}
	var stdout, stderr bytes.Buffer
	parser := kong.Must(&grammar, kong.Writers(&stdout, &stderr), kong.BindTo(t.Context(), (*context.Context)(nil)))
	parsed, err := parser.Parse(append([]string{"designs"}, args...))
	if err == nil {
		err = parsed.Run()
	}
	return stdout.String(), err
}

func TestCommand_usage(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"10ms to 1m":     {"--length=1ms"},
		"row-first":      {"--only=row-second"},
		"want host:port": {"--redis=redis://:x", "--mysql=none"},
		"--mysql: ":      {"--mysql=none", "--redis=127.0.0.1:1"},
		"has TLS":        {"--redis=rediss://127.0.0.1:1"},
	} {
		if _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", args, err, want)
		}
	}
}

// The table has a row for each design, a figure for each case, and a dash for carts that a design cannot sell.
func TestCommand_table(t *testing.T) {
	t.Parallel()
	out, err := run(t, "--only=queue-per-sku,buckets,lanes", "--length=300ms", "--no-faults",
		"--mysql="+testserver.MySQL(t), "--redis="+ownRedis(t))
	testserver.Must(t, err)
	t.Log(out)
	rows := map[string][]string{}
	for line := range strings.Lines(out) {
		if cells := strings.Fields(strings.Replace(line, " *", "", 1)); len(cells) > 0 {
			rows[cells[0]] = cells[1:]
		}
	}
	for name, carts := range map[string]bool{"queue-per-sku": false, "buckets": true, "lanes": true} {
		cells := rows[name]
		sold := len(cells) == 8 && strings.ContainsAny(strings.Join(cells[:4], ""), "123456789")
		if !sold || cells[5] == "0" || (cells[4] == "-") == carts {
			t.Errorf("%s: got %q", name, cells)
			continue
		}
		if left := cells[6]; (left != "0") != (name == "buckets") {
			t.Errorf("%s: %s units left when the first buyer was refused", name, left)
		}
	}
	if strings.Contains(out, "errors") {
		t.Error("some orders were answered with errors")
	}
}

// A design that is known to be wrong is caught, and no failure of the command. The files have what the
// table says. A Redis that has keys is left as it is.
func TestCommand_faults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, picture := filepath.Join(dir, "report.json"), filepath.Join(dir, "picture.svg")
	addr := testserver.Start(t, testserver.OpenRedis).Addr()
	args := []string{
		"--only=buckets", "--length=100ms", "--mysql=" + testserver.MySQL(t), "--redis=" + addr, "--json=" + text, "--svg=" + picture,
	}
	testserver.Must(t, testserver.AskRedis(t.Context(), addr, "SET", "somebody's", "value").Err())
	if _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), "it has keys") {
		t.Errorf("got %v, want an error that the Redis has keys", err)
	}
	if n, err := testserver.AskRedis(t.Context(), addr, "DEL", "somebody's").Int(); n != 1 || err != nil {
		t.Fatalf("%d keys were left: %v", n, err)
	}
	out, err := run(t, args...)
	testserver.Must(t, err)
	for _, fault := range allFaults() {
		if strings.Contains(out, fault.name+" ") == fault.redis {
			t.Errorf("want %s only where Redis decides:\n%s", fault.name, out)
		}
	}
	var r Report
	written, err := os.ReadFile(text)
	testserver.Must(t, err)
	testserver.Must(t, json.Unmarshal(written, &r))
	if len(r.Designs) != 1 || r.Designs[0].Tries != 1 || r.Designs[0].Load[hot] == 0 {
		t.Errorf("got %s", written)
	}
	drawn, err := os.ReadFile(picture)
	testserver.Must(t, err)
	if n := strings.Count(string(drawn), `>undersold</text>`); n != len(r.Designs[0].Faults) {
		t.Errorf("the picture has undersold %d times, want it for each of %+v", n, r.Designs[0].Faults)
	}
}
