package step

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const lessons = "../../docs/lessons.md"

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
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

// "Each is a strategy of this repository": each mistake has its section with code, a play that fails and one of a right
// strategy, and no other strategy has one.
func TestLessons_sections(t *testing.T) {
	t.Parallel()
	var named []string
	for _, section := range strings.Split(readFile(t, lessons), "\n## ") {
		heading, body, _ := strings.Cut(section, "\n")
		name := regexp.MustCompile("^\\d+\\. .* \\(`(.*)`\\)$").FindStringSubmatch(heading)
		if name == nil {
			continue
		}
		named = append(named, name[1])
		m, _ := MistakeOf(name[1])
		for _, want := range []string{
			"```go\n", "$ go run ./loadtest step " + name[1] + "\n",
			"\n" + name[1] + " in " + m.Scenario + ": failed\n", " in " + m.Scenario + ": passed\n",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: want %q", name[1], want)
			}
		}
	}
	var want []string
	for _, m := range Mistakes() {
		want = append(want, m.Strategy)
	}
	if !slices.Equal(named, want) {
		t.Errorf("sections: got %v, want %v", named, want)
	}
}

// Every command, every link and every piece of code that names its file is real.
func TestLessons_references(t *testing.T) {
	t.Parallel()
	page := readFile(t, lessons)
	commands := regexp.MustCompile(`go run ./loadtest (?:step|explore) ?([a-z-]*)`).FindAllStringSubmatch(page, -1)
	for _, command := range commands {
		if _, mistake := MistakeOf(command[1]); !mistake && command[1] != all && command[1] != "" && command[1] != "--schedule" {
			t.Errorf("%s: there is no such play", command[0])
		}
	}
	if n := strings.Count(page, "go run "); n != len(commands) {
		t.Errorf("%d commands, of which %d are checked", n, len(commands))
	}
	for _, target := range regexp.MustCompile("`make ([a-z-]+)").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(readFile(t, "../../Makefile"), "\n"+target[1]+":") {
			t.Errorf("make %s: no such target", target[1])
		}
	}
	for _, link := range regexp.MustCompile(`\]\((\.\.[^)]*)\)`).FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join("../../docs", link[1])); err != nil {
			t.Error(err)
		}
	}
	quoted := map[string]bool{}
	for _, code := range fenced(page, "go") {
		file, code, _ := strings.Cut(code, "\n")
		if file, named := strings.CutPrefix(file, "// internal/"); named {
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

// compareLessons compares the page with plays held now. "The timelines here are output of the command above each, with
// lines left out. No line was changed": the same lines, in the same order. The rows of the table are the same, but for
// failures that may end either way.
func compareLessons(t *testing.T, printed, whole string) {
	t.Helper()
	page := readFile(t, lessons)
	now := map[string]timeline{}
	for _, p := range timelines(whole) {
		now[p.title] = p
	}
	shown := 0
	for _, block := range fenced(page, "text") {
		for _, p := range timelines(block) {
			shown++
			held, known := now[p.title]
			if missing := firstMissing(p.rows, held.rows); !known || missing != "" {
				t.Errorf("%s: want, where the page has it,\n%s\nin\n%s", p.title, missing, strings.Join(held.rows, "\n"))
			}
			if len(p.rows) == 0 || p.after == "" || !strings.HasPrefix(held.after, p.after) {
				t.Errorf("%s: %d lines, and then got %q, want %q", p.title, len(p.rows), held.after, p.after)
			}
		}
	}
	if want := 2 * len(Mistakes()); shown != want {
		t.Errorf("%d timelines, want %d", shown, want)
	}
	settle := func(text string) []string {
		rows := regexp.MustCompile(`(?m)^│.*│$`).FindAllString(text, -1)
		for i := range rows {
			if _, wrong := MistakeOf(strings.Fields(rows[i])[1]); wrong {
				rows[i] = strings.ReplaceAll(rows[i], "failed", "passed")
			}
		}
		return rows
	}
	page, _, _ = strings.Cut(page, "$ go run ./loadtest explore all\n") // which has a table of its own
	if got, want := settle(page), settle(printed); !slices.Equal(got, want) {
		t.Errorf("table: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// timeline is a play as step prints it, without what differs each time.
type timeline struct {
	title string
	rows  []string // with the column of each
	after string   // the text below
}

// timelines finds the plays in what step printed, or in a part of it.
func timelines(text string) []timeline {
	titles := regexp.MustCompile(`(?m)^\S+ in \S+: (passed|failed)$`).FindAllStringIndex(text, -1)
	var plays []timeline
	for i, title := range titles {
		end := len(text)
		if i+1 < len(titles) {
			end = titles[i+1][0]
		}
		_, below, _ := strings.Cut(text[title[1]:end], "B, instance 2\n")
		lines, after, _ := strings.Cut(below, "\n\n")
		plays = append(plays, timeline{text[title[0]:title[1]], rows(lines), strings.Join(strings.Fields(after), " ")})
	}
	return plays
}

// rows joins the lines that are one event: the first of them has the time. What differs each time is replaced: owners,
// fences, times, counts, and whether Redis knew a script.
func rows(lines string) []string {
	begins := regexp.MustCompile(`^ *\d+\.\d  `)
	var rows []string
	for line := range strings.Lines(lines) {
		time := begins.FindString(line)
		text := strings.Join(strings.Fields(line[len(time):]), " ")
		switch {
		case time == "" && len(rows) > 0:
			rows[len(rows)-1] += " " + text
		case strings.HasPrefix(line[len(time):], strings.Repeat(" ", 20)):
			rows = append(rows, "B: "+text)
		default:
			rows = append(rows, "A: "+text)
		}
	}
	for i := range rows {
		for _, chance := range [][2]string{
			{`\b[0-9A-Za-z]{6}…`, "owner"}, {`\b\d{10,}\b`, "fence"}, {`held for \d+ ms`, "held for some ms"},
			{` \(\d+ times\)`, ""}, {`\bEVALSHA\b`, "EVAL"}, {` -+$`, ""},
		} {
			rows[i] = regexp.MustCompile(chance[0]).ReplaceAllString(rows[i], chance[1])
		}
	}
	return rows
}

// firstMissing returns the first of the rows that does not come in all where it should: after those before it.
func firstMissing(rows, all []string) string {
	for _, row := range rows {
		i := slices.Index(all, row)
		if i < 0 {
			return row
		}
		all = all[i+1:]
	}
	return ""
}
