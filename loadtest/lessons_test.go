package main

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/shop/loadtest/steps"
)

// lessonsPage reads docs/lessons.md.
func lessonsPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/lessons.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fenced returns the code blocks of a page in a language.
func fenced(page, language string) []string {
	var blocks []string
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, found[1])
	}
	return blocks
}

// "Each is a strategy of this repository": each wrong one of the shop has its section
// with code, a play that fails and one of a right strategy, and no other has one.
func TestLessons_sections(t *testing.T) {
	t.Parallel()
	var named []string
	for _, section := range strings.Split(lessonsPage(t), "\n## ") {
		heading, body, _ := strings.Cut(section, "\n")
		name := regexp.MustCompile("^\\d+\\. .* \\(`(.*)`\\)$").FindStringSubmatch(heading)
		if name == nil {
			continue
		}
		named = append(named, name[1])
		for _, want := range []string{
			"```go\n", "$ go run ./loadtest step " + name[1] + "\n",
			"\n" + name[1] + " in " + steps.Failures()[name[1]] + ": failed\n", " in " + steps.Failures()[name[1]] + ": passed\n",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: want %q", name[1], want)
			}
		}
	}
	slices.Sort(named)
	if want := slices.Sorted(maps.Keys(steps.Failures())); !slices.Equal(named, want) {
		t.Errorf("sections: got %v, want %v", named, want)
	}
}

// Every command, every link and every piece of code that names its file is real.
func TestLessons_references(t *testing.T) {
	t.Parallel()
	page := lessonsPage(t)
	commands := regexp.MustCompile(`go run ./loadtest step ?([a-z-]*)`).FindAllStringSubmatch(page, -1)
	for _, command := range commands {
		var args []string
		if command[1] != "" {
			args = []string{command[1]}
		}
		f, err := parseStep(call{args: args, getenv: noEnv, stdout: io.Discard, stderr: io.Discard})
		if err != nil {
			t.Errorf("%s: %v", command[0], err)
		}
		for _, name := range f.Names {
			if _, wrong := steps.Failures()[name]; !wrong && name != all {
				t.Errorf("%s: there is no such play", command[0])
			}
		}
	}
	if n := strings.Count(page, "go run "); n != len(commands) {
		t.Errorf("%d commands, of which %d are of step and checked", n, len(commands))
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range regexp.MustCompile("`make ([a-z-]+)").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(string(makefile), "\n"+target[1]+":") {
			t.Errorf("make %s: no such target", target[1])
		}
	}
	for _, link := range regexp.MustCompile(`\]\((\.\.[^)]*)\)`).FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join("../docs", link[1])); err != nil {
			t.Error(err)
		}
	}
	for _, code := range fenced(page, "go") {
		file, code, _ := strings.Cut(code, "\n")
		file, named := strings.CutPrefix(file, "// internal/")
		if !named {
			continue
		}
		if source, err := os.ReadFile(filepath.Join("../internal", file)); err != nil || !strings.Contains(string(source), code) {
			t.Errorf("%s: %v, want in it:\n%s", file, err, code)
		}
	}
}

// "How every strategy fares in every scenario that applies to it": each row of the
// table, as far as the outcome is known beforehand.
func TestLessons_table(t *testing.T) {
	t.Parallel()
	player, err := steps.Open(t.Context(), steps.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := player.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	applies := map[[2]string]bool{}
	for _, w := range player.Wishes(1) {
		applies[[2]string{w.Strategy, w.Scenario}] = true
	}
	page := lessonsPage(t)
	for _, how := range player.Strategies() {
		row := regexp.MustCompile(`(?m)^│ ` + how.Name + ` .*$`).FindString(page)
		if (row == "") != (how.Missing != "") {
			t.Errorf("%s: got %q, and of its servers: %q", how.Name, row, how.Missing)
		}
		if row == "" {
			continue
		}
		cells := strings.Split(row, "│")[2:]
		for i, in := range steps.Scenarios() {
			want := "passed"
			switch {
			case !applies[[2]string{how.Name, in.Name}]:
				want = "-"
			case steps.Failures()[how.Name] == in.Name:
				want = "FAILED"
			case !how.Promises: // may end either way
				want = "passed failed"
			}
			if got := strings.TrimSpace(cells[i]); !strings.Contains(want, got) {
				t.Errorf("%s in %s: got %q, want %q", how.Name, in.Name, got, want)
			}
		}
	}
}
