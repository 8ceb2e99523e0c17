package lock_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// "To use the package in another module, copy its .go and .lua files without the tests. They need only go-redis": as the
// README's commands do, which run at the root of the repository.
func TestCopy(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a module; not with -short")
	}
	dir := copyByReadme(t, "**The core**", "**All backends**")
	if files := names(t, dir); slices.ContainsFunc(files, isTest) || len(files) < 10 {
		t.Errorf("got %q, want the package without tests", files)
	}
	const goRedis = "github.com/redis/go-redis/v9"
	version := run(t, ".", "go", "list", "-m", "-f", "{{.Version}}", goRedis)
	sums, err := os.ReadFile(filepath.Join("..", "..", "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	mod := fmt.Sprintf("module elsewhere.example/theirs/lock\n\ngo 1.26\n\nrequire %s %s\n", goRedis, version)
	for name, text := range map[string]string{"go.mod": mod, "go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "go", "vet", "-mod=mod", ".")
	for _, dep := range strings.Fields(run(t, dir, "go", "list", "-mod=mod", "-f", `{{join .Imports "\n"}}`, ".")) {
		if strings.Contains(dep, ".") && dep != goRedis {
			t.Errorf("imports %s", dep)
		}
	}
}

func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

// run returns what a command prints.
func run(t *testing.T, dir string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return strings.TrimSpace(string(out))
}

// The README's commands for all backends leave all files but tests, none of which names this module's copy. BSD's sed
// has no -i without a suffix.
func TestCopy_allBackends(t *testing.T) {
	t.Parallel()
	copied := copyByReadme(t, "**All backends**", "| folder |")
	want := slices.DeleteFunc(names(t, "."), isTest)
	if got := names(t, copied); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, name := range names(t, copied) {
		text, err := os.ReadFile(filepath.Join(copied, name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("example.com/shop")) {
			t.Errorf("%s names this module", name)
		}
	}
}

// copyByReadme runs the commands between two places of the README, and returns where the copy is.
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
