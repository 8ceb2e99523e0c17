package locksim

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"example.com/shop/internal/testserver/overlay"
)

var all = flag.Bool("all", false, "try all controls, and not only the first one")

// The simulation is not blind: it finds each mistake in controls, by the rule that the patch names.
func TestControls(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the package again: not with -short")
	}
	files, _ := filepath.Glob("controls/*.patch")
	root, err := filepath.Abs("../../../..")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d controls, %v", len(files), err)
	}
	for i, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			patch, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			rule := regexp.MustCompile("\nFound by: (.+)\n").FindSubmatch(patch)
			changed := overlay.Overlay{}
			if err := changed.Apply(root, string(patch)); rule == nil || err != nil {
				t.Fatalf("by %q, %v", rule, err)
			}
			if i > 0 && !*all {
				t.Skip("applies; is tried with -all")
			}
			list, err := changed.Write(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			sim := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay", list, "-run=^TestSim$", ".", "-args", "-seeds=1500")
			if out, _ := sim.CombinedOutput(); !bytes.Contains(out, rule[1]) {
				t.Errorf("want a seed with %q:\n%s", rule[1], out)
			}
		})
	}
}
