package docs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every package is in the picture, and the arrows from a package lead to exactly the packages that it imports, directly or
// through others.
func TestArchitecture_packages(t *testing.T) {
	t.Parallel()
	nodes, arrows, imports := map[string]string{}, map[string][]string{}, map[string][]string{}
	page, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## The packages\n")
	picture, _, _ := strings.Cut(rest, "\n## ")
	for _, node := range regexp.MustCompile(`(\w+)\["([\w/]+).*?"\](?: --> (.*))?`).FindAllStringSubmatch(picture, -1) {
		nodes[node[2]], arrows[node[1]] = node[1], strings.Fields(strings.ReplaceAll(node[3], "&", ""))
	}
	nodeOf := func(folder string) string {
		for folder != "." && nodes[folder] == "" {
			folder = filepath.Dir(folder)
		}
		return nodes[folder]
	}
	err = filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		folder := strings.TrimPrefix(filepath.Dir(path), "../")
		ours := regexp.MustCompile(`^\.\./(cmd|internal|loadtest)/.*\.go$`).MatchString(path)
		if err != nil || !ours || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil || nodeOf(folder) == "" {
			t.Errorf("%s: not in the picture, %v", path, err)
			return nil
		}
		for _, i := range file.Imports {
			imported, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "example.com/shop/")
			if from, to := nodeOf(folder), nodeOf(imported); ours && from != to {
				imports[from] = append(imports[from], to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, node := range nodes {
		if diff := cmp.Diff(reached(imports, node), reached(arrows, node)); diff != "" {
			t.Errorf("%s (-imports +picture):\n%s", folder, diff)
		}
	}
}

// reached returns the nodes that the arrows from a node lead to, directly or through others.
func reached(arrows map[string][]string, node string) []string {
	seen := map[string]bool{}
	for next := slices.Clone(arrows[node]); len(next) > 0; next = next[1:] {
		if !seen[next[0]] {
			seen[next[0]] = true
			next = append(next, arrows[next[0]]...)
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
