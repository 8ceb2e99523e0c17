package overlay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// "The old lines of each hunk must occur in their file exactly once. Line numbers do not count [...] Text above the first file
// is ignored. After an error, the overlay is as it was."
func TestOverlay_Apply(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "f")
	if err := os.WriteFile(file, []byte("one\ntwo\nthree\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const start = "Why: the -\n\n--- a/f\n+++ b/f\n@@ -7,2 +7,2 @@\n"
	changed := Overlay{}
	both := start + " one\n-two\n+2\n@@ -9 +9,2 @@ func\n-three\n+3\n+--- a\n"
	git := "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -3 +3 @@\n-two\n+end\n"
	if err := changed.Apply(folder, both+git); err != nil || changed[file] != "one\n2\n3\n--- a\nend\n" {
		t.Errorf("got %q, %v", changed[file], err)
	}
	for patch, want := range map[string]string{
		start + "-two\n+2\n":                      "exactly once",
		start + "-hree\n+3\n":                     "exactly once",
		start + " one\n+1\n@@ @@\n-four\n+4\n":    "exactly once",
		start + " one\n\n-two\n":                  `"\n" is no line`,
		start + "-two\n+2":                        "exactly once",
		"--- a/f\n+++ b/f\n":                      "no hunk",
		strings.ReplaceAll(both, "b/f", "f"):      "changes no file",
		strings.Replace(both, "b/f", "b/none", 1): "no such file",
	} {
		changed := Overlay{}
		if err := changed.Apply(folder, patch); err == nil || !strings.Contains(err.Error(), want) || len(changed) > 0 {
			t.Errorf("%q: got %v, %v, want %q", patch, changed, err, want)
		}
	}
}
