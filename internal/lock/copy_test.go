package lock_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// "To use the package in another module, copy its .go and .lua files; go-redis
// is all they need."
func TestCopy(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module; not with -short")
	}
	dir := t.TempDir()
	for _, pattern := range []string{"*.go", "*.lua"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	const goRedis = "github.com/redis/go-redis/v9"
	version := run(t, ".", "go", "list", "-m", "-f", "{{.Version}}", goRedis)
	module := filepath.Dir(run(t, ".", "go", "env", "GOMOD"))
	sums, err := os.ReadFile(filepath.Join(module, "go.sum"))
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
	run(t, dir, "go", "build", "-mod=mod", ".")
	for _, dep := range strings.Fields(run(t, dir, "go", "list", "-mod=mod", "-f", `{{join .Imports "\n"}}`, ".")) {
		if strings.Contains(dep, ".") && dep != goRedis {
			t.Errorf("imports %s", dep)
		}
	}
}

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
