package lock_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The README's commands for the core run at the root of the repository, as they
// stand there, and leave nothing but the package's own files.
func TestCopy_readme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "**The core**")
	core, _, found := strings.Cut(after, "**The whole folder**")
	if !found {
		t.Fatal("the README has no commands for the core")
	}
	script := []string{"set -e"}
	for line := range strings.Lines(core) {
		if command, indented := strings.CutPrefix(line, "    "); indented {
			script = append(script, strings.TrimSpace(command))
		}
	}
	to := filepath.Join(t.TempDir(), "yourshop")
	run(t, filepath.Join("..", ".."), "sh", "-c", strings.ReplaceAll(strings.Join(script, "\n"), "../yourshop", "'"+to+"'"))
	files, err := os.ReadDir(filepath.Join(to, "lock"))
	if err != nil || len(files) < 10 {
		t.Fatalf("got %d files, %v, want the package", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), "_test.go") {
			t.Errorf("got %s, want no test", file.Name())
		}
	}
}
