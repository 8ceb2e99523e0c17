package step

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// find returns what the first group of a pattern matches in a page.
func find(page, pattern string) (all []string) {
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(page, -1) {
		all = append(all, found[1])
	}
	return all
}

// commands finds those in code that a reader can type.
func commands(page string) []string {
	return find(page, "(?m)(?:`|^    |^\\$ )((?:go run|go test|make) [!-_a-~]+(?: [!-_a-~]+)*)")
}

// links finds the targets of links.
func links(page string) []string { return find(page, `\]\(([^)]*)\)`) }

// Both editions of a page show the same code, commands and links.
func TestPages_languages(t *testing.T) {
	t.Parallel()
	for english, chinese := range map[string]string{"../../README.md": "../../README.zh-CN.md", lessons: "../../docs/lessons.zh-CN.md"} {
		shown := func(name string) []string {
			page := strings.ReplaceAll(readFile(t, name), ".zh-CN", "")
			return slices.Concat(find(page, "(?ms)^(```.*?^```)$"), slices.Sorted(slices.Values(commands(page))),
				slices.Compact(slices.Sorted(slices.Values(links(page)))))
		}
		if diff := cmp.Diff(shown(english), shown(chinese)); diff != "" {
			t.Errorf("%s (-English +Chinese):\n%s", chinese, diff)
		}
	}
}

// Every link leads somewhere, and every target, test, lesson and strategy that a command names is there.
func TestPages_references(t *testing.T) {
	t.Parallel()
	names := append(find(readFile(t, "../../internal/lab/strategies.go"), `Name: "([a-z-]+)"`), all)
	for _, l := range Lessons() {
		names = append(names, l.Name)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(pages, "../../README.md", "../../README.zh-CN.md") {
		page := readFile(t, name)
		for _, command := range commands(page) {
			for _, target := range find(command, `^make (\S+)`) {
				if !strings.Contains(readFile(t, "../../Makefile"), "\n"+target+":") {
					t.Errorf("%s: %s: no such target", name, command)
				}
			}
			for _, test := range find(command, `-run (\w+)`) {
				files, err := filepath.Glob(filepath.Join("../..", strings.Fields(command)[2], "*_test.go"))
				declares := func(file string) bool { return strings.Contains(readFile(t, file), "\nfunc "+test+"(") }
				if err != nil || !slices.ContainsFunc(files, declares) {
					t.Errorf("%s: %s: no such test", name, command)
				}
			}
			for _, list := range find(command, `(?: step| explore|--strategies) ([a-z][a-z,-]*)`) {
				for name := range strings.SplitSeq(list, ",") {
					if !slices.Contains(names, name) {
						t.Errorf("%s: no such lesson or strategy: %s", command, name)
					}
				}
			}
		}
		for _, link := range links(page) {
			file, anchor, _ := strings.Cut(link, "#")
			path := filepath.Join(filepath.Dir(name), file)
			if file == "" {
				path = name
			}
			if strings.Contains(link, ":") { // of another site
				continue
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if anchor != "" && !slices.Contains(anchors(readFile(t, path)), anchor) {
				t.Errorf("%s: %s: no such section", name, link)
			}
		}
	}
}

// anchors are the names of a page's sections, as GitHub makes them, and those that it gives by itself.
func anchors(page string) []string {
	all := find(page, `<a id="([^"]*)"></a>`)
	for _, heading := range find(page, "(?m)^##+ (.*)$") {
		heading = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
		all = append(all, strings.ReplaceAll(heading, " ", "-"))
	}
	return all
}

// Code that names its file stands in that file.
func TestLessons_code(t *testing.T) {
	t.Parallel()
	page := readFile(t, lessons)
	for _, code := range append(fenced(page, "go"), fenced(page, "lua")...) {
		comment, code, _ := strings.Cut(code, "\n")
		_, file, named := strings.Cut(comment, " internal/")
		if named && !strings.Contains(readFile(t, filepath.Join("../../internal", file)), code) {
			t.Errorf("%s: want in it:\n%s", file, code)
		}
	}
}
