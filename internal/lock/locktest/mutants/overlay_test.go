package mutants

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// overlay makes the edits in copies of the files, and returns the name of a file
// that tells the compiler to read those, and to leave out files of a pattern.
func overlay(t *testing.T, edits []edit, without string) (file string) {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..") // package lock
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, e := range edits {
		if texts[e.file] == "" {
			texts[e.file] = read(t, filepath.Join(root, e.file))
		}
		if n := strings.Count(texts[e.file], e.old); n != 1 {
			t.Fatalf("%s has %d places like this, want 1:\n%s", e.file, n, e.old)
		}
		texts[e.file] = strings.Replace(texts[e.file], e.old, e.new, 1)
	}
	replace := make(map[string]string)
	for name, text := range texts {
		replace[filepath.Join(root, name)] = filepath.Join(dir, name)
		write(t, filepath.Join(dir, name), text)
	}
	if without != "" {
		leaveOut(t, filepath.Join(root, without), replace)
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "overlay.json")
	write(t, file, string(list))
	return file
}

// leaveOut takes the files away, but for what others need of them.
func leaveOut(t *testing.T, pattern string, replace map[string]string) {
	t.Helper()
	const rest = `package lock

func wakeUp(told chan struct{}) {
	select {
	case told <- struct{}{}:
	default:
	}
}
`
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", pattern, err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") {
			replace[f] = ""
			pattern = f
		}
	}
	stub := filepath.Join(t.TempDir(), "rest.go")
	write(t, stub, rest)
	replace[pattern] = stub
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
