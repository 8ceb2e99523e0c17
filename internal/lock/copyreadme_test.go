package lock_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The README's commands for the core run at the root of the repository, as they
// stand there, and leave nothing but the package's own files.
func TestCopy_readme(t *testing.T) {
	t.Parallel()
	copied := copyByReadme(t, "**The core**", "**The whole folder**")
	files, err := os.ReadDir(copied)
	if err != nil || len(files) < 10 {
		t.Fatalf("got %d files, %v, want the package", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), "_test.go") {
			t.Errorf("got %s, want no test", file.Name())
		}
	}
}

// Those for the whole folder leave its files, none of which names this module's
// copy, and no others. BSD's sed has no -i without a suffix.
func TestCopy_readmeWholeFolder(t *testing.T) {
	t.Parallel()
	copied := copyByReadme(t, "**The whole folder**", "| folder |")
	if got, want := names(t, copied), names(t, "."); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, name := range names(t, copied) {
		text, err := os.ReadFile(filepath.Join(copied, name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("example.com/shop/internal"+"/lock")) {
			t.Errorf("%s names the package as it was", name)
		}
	}
}

// copyByReadme runs the commands between two places of the README, and returns
// where the copy is.
func copyByReadme(t *testing.T, from, to string) string {
	t.Helper()
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "internal", "lock")); err != nil {
		t.Skip("this is a copy, and the README's commands begin where it came from")
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), from)
	part, _, found := strings.Cut(after, to)
	if !found {
		t.Fatalf("the README has no commands between %q and %q", from, to)
	}
	script := []string{"set -e"}
	for line := range strings.Lines(part) {
		if command, indented := strings.CutPrefix(line, "    "); indented {
			script = append(script, strings.TrimSpace(command))
		}
	}
	shop := filepath.Join(t.TempDir(), "yourshop")
	run(t, root, "sh", "-c", strings.ReplaceAll(strings.Join(script, "\n"), "../yourshop", "'"+shop+"'"))
	return filepath.Join(shop, "lock")
}

// names returns the files in a directory and below it.
func names(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, file fs.DirEntry, err error) error {
		if err == nil && !file.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
