// Package lang translates the texts of the load test, on the terminal and on its page. The English text is the key of its
// translation in zh.json.
package lang

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Chinese is the catalogue, a JSON object from English to Chinese.
//
//go:embed zh.json
var Chinese []byte

var chinese = sync.OnceValue(func() (texts map[string]string) { //nolint:gochecknoglobals // a constant
	if err := json.Unmarshal(Chinese, &texts); err != nil {
		panic(err) // a test parses zh.json
	}
	return texts
})

// Flag is the language of what a command prints, and of the pages and pictures that it writes. Help, errors, JSON and the
// answers of servers are English.
type Flag struct {
	Lang string `group:"Output" enum:"en,zh" default:"en" help:"Language of the explanations: en, or zh for Chinese."`
}

// Text returns the translation of a text or, if there is none, the English text. Values are filled in as by fmt.Sprintf.
func Text(language, english string, values ...any) string {
	if language == "zh" {
		english = translated(english)
	}
	if len(values) == 0 {
		return english
	}
	return fmt.Sprintf(english, values...)
}

var number = regexp.MustCompile(`\d+(?:[,.]\d+)*`)

// translated returns the Chinese text. If a text already has its numbers, its key may have {n} in their places. The parts
// before and after a colon may have separate keys.
func translated(english string) string {
	if text := chinese()[english]; text != "" {
		return text
	}
	if text := chinese()[number.ReplaceAllString(english, "{n}")]; text != "" {
		for _, n := range number.FindAllString(english, -1) {
			text = strings.Replace(text, "{n}", n, 1)
		}
		return text
	}
	if what, why, both := strings.Cut(english, ": "); both && translated(what) != what {
		return translated(what) + "：" + translated(why)
	}
	return english
}

const wide = `\p{Han}，。；：、（）？！`

// A line may break at a blank and beside a Chinese character, but not before a closing mark or after an opening mark.
var parts = regexp.MustCompile(`[（“]*(?:\p{Han}|[^\s` + wide + `“”]*)[，。；：、）”？！]*\s*`)

// Wrap breaks a paragraph into lines of at most width columns. A Chinese character takes two columns. A longer word has
// a line of its own.
func Wrap(paragraph string, width int) []string {
	lines := []string{""}
	for _, part := range parts.FindAllString(paragraph, -1) {
		last := &lines[len(lines)-1]
		if *last != "" && text.StringWidth(*last)+text.StringWidth(strings.TrimSpace(part)) > width {
			lines = append(lines, "")
			last = &lines[len(lines)-1]
		}
		*last += part
	}
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return lines
}

// Hang writes a name and, indented beside it, a paragraph. It writes nothing if the paragraph is empty.
func Hang(w io.Writer, width int, name string, indent int, paragraph string) {
	if paragraph != "" {
		lines := strings.Join(Wrap(paragraph, width-indent), "\n"+strings.Repeat(" ", indent))
		fmt.Fprintf(w, "%-*s%s\n", indent, name, lines)
	}
}
