package step

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pages are in English and in Chinese.
var pages = [][2]string{{"../../README.md", "../../README.zh-CN.md"}, {lessons, "../../docs/lessons.zh-CN.md"}}

// alone are pages in English alone.
var alone = []string{"../../docs/architecture.md", "../../docs/contributing.md", "../../docs/faults.md"}

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

// Both editions of a page show the same: code, commands, strategies, links and tables.
func TestPages_languages(t *testing.T) {
	t.Parallel()
	for _, pair := range pages {
		english, chinese := readFile(t, pair[0]), readFile(t, pair[1])
		for what, parts := range map[string]func(page string) []string{
			"code":     func(page string) []string { return find(page, "(?ms)^(```.*?^```)$") },
			"indented": func(page string) []string { return find(page, `(?m)^    +(\S+(?: [!-~]+)*)`) },
			"commands": func(page string) []string { return slices.Sorted(slices.Values(commands(page))) },
			"headings": func(page string) (all []string) {
				page = strings.Join(regexp.MustCompile("(?ms)^```.*?^```$").Split(page, -1), "")
				for _, heading := range find(page, "(?m)^(##? .*)$") {
					number, _, _ := strings.Cut(heading, ".")
					all = append(all, fmt.Sprint(strings.Count(number, "#"), find(heading, `## (\d+)\.`), find(heading, "(`.*`)")))
				}
				return all
			},
			"rows": func(page string) (all []string) {
				for _, row := range find(page, `(?m)^(\|.*)$`) {
					all = append(all, fmt.Sprint(strings.Count(row, "|"), find(row, "(`go [^`]*`)"), find(row, `\]\(([^)]*)\)`)))
				}
				return all
			},
			"links": func(page string) []string {
				page = strings.NewReplacer("README.zh-CN.md", "LANGUAGE", "[English](README.md)", "[](LANGUAGE)",
					"[中文](lessons.zh-CN.md)", "[](LANGUAGE)", "[English](lessons.md)", "[](LANGUAGE)", ".zh-CN", "").Replace(page)
				links := slices.Sorted(slices.Values(find(page, `\]\(([^)]*)\)`)))
				return slices.Compact(links)
			},
		} {
			if diff := cmp.Diff(parts(english), parts(chinese)); diff != "" {
				t.Errorf("%s: %s (-English +Chinese):\n%s", pair[1], what, diff)
			}
		}
	}
}

// Every command, every link and every piece of code that names its file is real.
func TestLessons_references(t *testing.T) {
	t.Parallel()
	known := append(find(readFile(t, "../../internal/lab/strategies.go"), `Name: "([a-z-]+)"`), all)
	for _, l := range Lessons() {
		known = append(known, l.Name)
	}
	for _, name := range slices.Concat(pages[0][:], pages[1][:], alone) {
		page := readFile(t, name)
		left := strings.Count(page, "go run ") + strings.Count(page, "go test ")
		for _, command := range commands(page) {
			if !strings.HasPrefix(command, "make") {
				left--
			}
			if err := checkCommand(t, command, known); err != nil {
				t.Errorf("%s: %s: %v", name, command, err)
			}
		}
		if left != 0 {
			t.Errorf("%s: %d commands are not checked", name, left)
		}
		for _, link := range find(page, `\]\(([^):]*)\)`) {
			file, anchor, _ := strings.Cut(link, "#")
			path := filepath.Join(filepath.Dir(name), file)
			if file == "" {
				path = name
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if anchor != "" && !slices.Contains(anchors(readFile(t, path)), anchor) {
				t.Errorf("%s: %s: no such section", name, link)
			}
		}
	}
	quoted := map[string]bool{}
	for _, code := range append(fenced(readFile(t, lessons), "go"), fenced(readFile(t, lessons), "lua")...) {
		comment, code, _ := strings.Cut(code, "\n")
		if _, file, named := strings.Cut(comment, " internal/"); named {
			quoted[file] = true
			if !strings.Contains(readFile(t, filepath.Join("../../internal", file)), code) {
				t.Errorf("%s: want in it:\n%s", file, code)
			}
		}
	}
	for _, want := range []string{"order/strategy/none.go", "order/strategy/redis.go"} {
		if !quoted[want] {
			t.Errorf("want a quote of %s", want)
		}
	}
}

// checkCommand looks for what a command names: a lesson, strategies, a test, a target.
func checkCommand(t *testing.T, command string, known []string) error {
	t.Helper()
	words := strings.Fields(command)
	after := func(word string) string {
		if i := slices.Index(words, word); i >= 0 && i+1 < len(words) {
			return words[i+1]
		}
		return ""
	}
	if target := after("make"); target != "" && !strings.Contains(readFile(t, "../../Makefile"), "\n"+target+":") {
		return fmt.Errorf("no such target: %s", target)
	}
	if test := after("-run"); test != "" {
		name, _, _ := strings.Cut(test, "/")
		files, err := filepath.Glob(filepath.Join("../..", words[2], "*_test.go"))
		if err != nil || !slices.ContainsFunc(files, func(file string) bool { return strings.Contains(readFile(t, file), "\nfunc "+name+"(") }) {
			return fmt.Errorf("no such test: %s", name)
		}
	}
	names := strings.Split(after("--strategies"), ",")
	for _, command := range []string{"step", "explore"} {
		if name := after(command); !strings.HasPrefix(name, "--") {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if name != "" && !slices.Contains(known, name) {
			return fmt.Errorf("no such lesson or strategy: %s", name)
		}
	}
	return nil
}

// anchors are the names of a page's sections, as GitHub makes them, and those that it gives by itself.
func anchors(page string) []string {
	all := find(page, `<a id="([^"]*)"></a>`)
	for _, heading := range find(page, "(?m)^##? (.*)$") {
		heading = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
		all = append(all, strings.ReplaceAll(heading, " ", "-"))
	}
	return all
}
