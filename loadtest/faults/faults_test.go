package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"example.com/shop/internal/testserver"
	"example.com/shop/internal/testserver/overlay"
	"example.com/shop/loadtest/faults/checks"
	"example.com/shop/loadtest/faults/system"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

// start runs the command as the program does, to its end.
func start(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var grammar struct {
		Faults Command `cmd:""`
	}
	var out, log bytes.Buffer
	parser := kong.Must(&grammar, kong.Writers(&out, &log), kong.BindTo(t.Context(), (*context.Context)(nil)))
	parsed, err := parser.Parse(append([]string{"faults"}, args...))
	if err == nil {
		err = parsed.Run()
	}
	return out.String(), log.String(), err
}

// A history for each kind of fault that needs no server: none, of a process, of the network, and unnoticed by clients.
func TestCommand_embedded(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file, page := filepath.Join(t.TempDir(), "report.json"), filepath.Join(t.TempDir(), "report.html")
	names := []string{"nothing", "shop-killed", "redis-cut-off-answers", "rolling-restart"}
	stdout, stderr, err := start(t, append(names, "--times=1", "--seed=7", "--json="+file, "--html="+page)...)
	if err != nil {
		t.Fatalf("got %v, want no promise broken\n%s\n%s", err, stdout, stderr)
	}
	var r report
	text, err := os.ReadFile(file)
	if err := errors.Join(err, json.Unmarshal(text, &r)); err != nil {
		t.Fatal(err)
	}
	var held []string
	for _, h := range r.Histories {
		held = append(held, h.Fault)
		if h.Seed != 7 || h.Kind != system.Embedded || h.Sold == 0 || h.Healed <= h.Broken || h.Broken == 0 || h.Recovery == 0 {
			t.Errorf("%s: got %+v, want a fault, sales before and after it, and what seed 7 draws", h.Fault, h)
		}
	}
	if !slices.Equal(held, names) {
		t.Errorf("got histories of %q, want %q", held, names)
	}
	for _, want := range append(names, "4 histories, 0 undecided by Porcupine") {
		if !strings.Contains(stdout, want) {
			t.Errorf("want %q in\n%s", want, stdout)
		}
	}
	if text, err := os.ReadFile(page); err != nil || strings.Count(string(text), "<svg") != len(names) {
		t.Errorf("page: got %v and %d timelines, want %d", err, strings.Count(string(text), "<svg"), len(names))
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// "A group acknowledges nothing that a majority has not received", and "the orders that" a replica "had not received are
// lost". docs/faults.md shows the output.
func TestCommand_killPrimary(t *testing.T) {
	testserver.NotUnderRace(t)
	testserver.MySQL(t) // or there is no Docker
	stdout, stderr, err := start(t, "kill-primary")
	if err != nil {
		t.Fatalf("got %v\n%s\n%s", err, stdout, stderr)
	}
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`\n +group of three  asynchronous replica\n`, `\norders acknowledged +[1-9]\d+ +[1-9]\d+\n`, `\nacknowledged orders lost +0 +[1-9]\d*\n`,
		`\nno sale for +\d+\.\d s +\d+\.\d s\n`, `\nasynchronous replica: the last receipts, and the rows of the new primary\n`,
		`\n *answered  order +receipt +row\n`, `\n *-\d+\.\d ms  [0-9a-f-]{36}  \d [a-z].* LOST\n`,
	} {
		for where, text := range map[string]string{"output": "\n" + stdout, "docs/faults.md": string(doc)} {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%s: want %s in\n%s", where, want, text)
			}
		}
	}
}

// "'faults controls' proves that the checks find mistakes". All of them take minutes; docs/faults.md has the figures.
func TestCommand_controls(t *testing.T) {
	t.Parallel()
	stdout, stderr, err := start(t, "controls", "key-ignored")
	if err != nil || !strings.Contains(stdout, "found after") {
		t.Errorf("got %v, want it found\n%s\n%s", err, stdout, stderr)
	}
}

// A control that is not found fails the run: the shop as it is has no mistake.
func TestCommand_controlNotFound(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := (&Command{Seed: 1}).findAll(t.Context(), func(string) {}, []control{{name: "none", on: system.Embedded, fault: "redis-flushed"}}, 1, &out)
	if !errors.Is(err, ErrBroken) || !strings.Contains(out.String(), "NOT FOUND in 1") {
		t.Errorf("got %v, want a broken promise\n%s", err, out.String())
	}
}

// Each control's patch applies to the source as it is today, in a way that compiles, and its fault exists. So does the patch
// for clocks-apart.
func TestControls_apply(t *testing.T) {
	t.Parallel()
	var patches []string
	for _, c := range allControls() {
		if _, ok := faultNamed(c.fault); !ok || c.about == "" {
			t.Errorf("%s: got the mistake %q and no fault %q", c.name, c.about, c.fault)
		}
		if _, err := sources(t.Context(), c.patch, false); err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if c.patch != "" {
			patches = append(patches, c.patch)
		}
	}
	clocks, err := sources(t.Context(), "", true)
	if err != nil || !strings.Contains(movableClock, system.ClockVariable) {
		t.Errorf("movable-clock.patch: %v, want it to read %s", err, system.ClockVariable)
	}
	builds := []overlay.Overlay{clocks}
	root, err := filepath.Abs("../..")
	testserver.Must(t, err)
	for len(patches) > 0 { // one build for all patches that can be applied together
		changed := overlay.Overlay{}
		patches = slices.DeleteFunc(patches, func(patch string) bool { return changed.Apply(root, patch) == nil })
		builds = append(builds, changed)
	}
	for _, changed := range builds {
		list, err := changed.Write(t.TempDir())
		testserver.Must(t, err)
		build := exec.CommandContext(t.Context(), "go", "build", "-overlay", list)
		for file := range changed {
			build.Args = append(build.Args, filepath.Dir(file))
		}
		if out, err := build.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
	}
}

func TestCommand_usage(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--times 0: want 1 to 10000":                {"--times=0"},
		`"shop-dead" is not a fault: 'faults list'`: {"shop-dead"},
		"mysql-killed needs servers: add":           {"mysql-killed"},
		"--json and --html report on faults":        {"list", "--json=-"},
		"lock-wait-ignored needs servers: add":      {"controls", "lock-wait-ignored"},
		`["no-such"]: want names of controls`:       {"controls", "no-such"},
		"--servers must be one of":                  {"--servers=here"},
	} {
		if _, _, err := start(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", args, err, want)
		}
	}
}

// docs/faults.md has what "faults list" has, and no more.
func TestCommand_list(t *testing.T) {
	t.Parallel()
	stdout, _, err := start(t, "list")
	text, failed := os.ReadFile(filepath.Join("..", "..", "docs", "faults.md"))
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	var want []string
	list := func(name string, columns ...string) {
		want = append(want, "| `"+name+"` | "+strings.Join(columns, " | ")+" |")
		if !regexp.MustCompile(`(?m)^` + name + ` +(?:[a-z-]+ +)?` + regexp.QuoteMeta(columns[len(columns)-1])).MatchString(stdout) {
			t.Errorf("faults list lacks %s", name)
		}
	}
	for _, f := range allFaults() {
		list(f.name, string(f.on), f.about)
		// "The check `waits` judges `leases-left`, `shop-killed` and the faults whose names begin with `redis-`."
		if judged := f.name == "leases-left" || f.name == "shop-killed" || strings.HasPrefix(f.name, "redis-"); judged != (f.means == lockAlone) {
			t.Errorf("%s: waits judges it: %v, want %v", f.name, !judged, judged)
		}
	}
	for _, c := range checks.All() {
		list(c.Name, c.About)
	}
	for _, c := range allControls() {
		list(c.name, string(c.on), c.about)
		if !regexp.MustCompile(`(?m)^\| ` + c.name + ` \| \d+ \| `).Match(text) {
			t.Errorf("docs/faults.md does not say after how many histories %s was found", c.name)
		}
	}
	got := regexp.MustCompile("(?m)^\\| `.*").FindAllString(string(text), -1)
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/faults.md differs (-want +got):\n%s", diff)
	}
}
