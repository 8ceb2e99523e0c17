package lang_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/step"
)

// literal is a string of Go or JavaScript.
const literal = `("(?:[^"\\\n]|\\.)*")`

// found returns what a pattern's group finds in files, unquoted if it is a literal.
func found(t *testing.T, files, pattern string) (texts []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("../..", files))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no such files", files)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		whole := regexp.MustCompile(`" ?\+\n\s*"`).ReplaceAllString(string(text), "") // a literal of several lines
		for _, group := range regexp.MustCompile(pattern).FindAllStringSubmatch(whole, -1) {
			text, err := strconv.Unquote(group[1])
			if err != nil {
				text = strings.TrimSpace(group[1])
			}
			texts = append(texts, text)
		}
	}
	return texts
}

// shown are the texts that need a translation, by where they stand.
func shown(t *testing.T) map[string][]string {
	t.Helper()
	var lessons, page []string
	for _, l := range step.Lessons() {
		lessons = append(lessons, l.Title, l.Text, l.Question, l.Why, l.Fix)
		for _, o := range l.Options {
			lessons = append(lessons, o.Text, o.Reason)
		}
	}
	for _, call := range found(t, "loadtest/web/static/*.js", `\bt\(((?:[^()]|\([^()]*\))*)\)`) {
		call = regexp.MustCompile(`=== "\w+"|replaceAll\([^)]*\)`).ReplaceAllString(call, "")
		for _, quoted := range regexp.MustCompile(literal).FindAllString(call, -1) {
			text, _ := strconv.Unquote(quoted)
			page = append(page, text)
		}
	}
	nodes := slices.Concat(found(t, "loadtest/web/html/*", `>([^<>{}]*[a-z]{2}[^<>{}]*)[<{]`), found(t, "loadtest/web/html/*.html", `aria-label="([^"{]*)"`))
	return map[string][]string{
		"lessons":    lessons,
		"scripts":    page,
		"page":       slices.DeleteFunc(nodes, func(text string) bool { return text == "English" || text == "Redis" }),
		"strategies": found(t, "internal/lab/strategies.go", `Lesson: +`+literal),
		"terminal":   slices.Concat(found(t, "loadtest/*.go", textOf), found(t, "loadtest/*/*.go", textOf)),
		"templates":  found(t, "loadtest/web/html/*", `\btext `+literal),
		"plays":      found(t, "loadtest/step/lessons.go", `p\.Why = `+literal),
		"verdicts":   found(t, "loadtest/result/verdict.go", ` Verdict = `+literal),
		"failover":   found(t, "loadtest/faults/failover.go", `(?:GroupOfThree = |{system\.\w+, )`+literal),
		"groups":     found(t, "loadtest/web/server.go", `title :?= `+literal),
	}
}

const textOf = `lang\.Text\([\w.()]+, ` + literal

// Each text has a translation, with the same values.
func TestChinese(t *testing.T) {
	t.Parallel()
	var chinese map[string]string
	if err := json.Unmarshal(lang.Chinese, &chinese); err != nil {
		t.Fatal(err)
	}
	for where, texts := range shown(t) {
		if len(texts) < 2 {
			t.Errorf("%s: got %d texts, want some", where, len(texts))
		}
		for _, text := range texts {
			if chinese[text] == "" {
				t.Errorf("%s: no translation of %q", where, text)
			}
		}
	}
	values := regexp.MustCompile(`%[a-z]|\{\w+\}`)
	for english, translated := range chinese {
		want, got := values.FindAllString(english, -1), values.FindAllString(translated, -1)
		if strings.Contains(english, "{") { // by name
			want, got = slices.Compact(slices.Sorted(slices.Values(want))), slices.Compact(slices.Sorted(slices.Values(got)))
		}
		if !slices.Equal(want, got) {
			t.Errorf("%q: got values %v, want %v", translated, got, want)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ language, english, want string }{
		{"zh", "no, held for 9,995 ms more (3 times)", "没拿到，锁还剩 9,995 ms（3 次）"}, {"zh", "books: I1 oversold by 3", "账目：I1 oversold by 3"},
		{"zh", "Remedy: ", "正确做法："}, {"en", "Remedy: ", "Remedy: "}, {"", "Remedy: ", "Remedy: "}, {"zh", "100 % unknown", "100 % unknown"},
	} {
		if got := lang.Text(c.language, c.english); got != c.want {
			t.Errorf("%s: got %q, want %q", c.language, got, c.want)
		}
	}
	if got := lang.Text("zh", "%d sold of 1 unit", 2); got != "总库存 1 件，售出 2 件" {
		t.Errorf("got %q", got)
	}
}

// "A Chinese character takes two columns. A longer word has a line of its own."
func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"one two  three", 8, []string{"one two", "three"}},
		{"one indivisible two", 4, []string{"one", "indivisible", "two"}},
		{"库存为零。售罄", 8, []string{"库存为", "零。售罄"}},
		{"用 SET NX 加锁", 9, []string{"用 SET NX", "加锁"}},
		{"", 9, []string{""}},
	} {
		if diff := cmp.Diff(c.want, lang.Wrap(c.text, c.width)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}
