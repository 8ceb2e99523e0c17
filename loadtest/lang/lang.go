// Package lang has the texts of the load test, on the terminal and on its page, in the languages of its readers. The
// English text is the key of its translation, in zh.json.
package lang

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Chinese is the catalogue, a JSON object from English to Chinese.
//
//go:embed zh.json
var Chinese []byte

var chinese = sync.OnceValue(func() (texts map[string]string) { //nolint:gochecknoglobals // a constant
	if err := json.Unmarshal(Chinese, &texts); err != nil {
		panic(err) // a test reads it
	}
	return texts
})

// Flag is the language of a command's explanations and verdicts. Tables and timelines are in English, and so are files.
type Flag struct {
	Lang string `enum:"en,zh" default:"en" help:"Language of what is printed: en, or zh for Chinese."`
}

// Text returns a text in a language, with its values as by fmt.Sprintf if it has any. What has no translation is English.
func Text(language, english string, values ...any) string {
	text := english
	if translated := chinese()[english]; language == "zh" && translated != "" {
		text = translated
	}
	if len(values) == 0 {
		return text
	}
	return fmt.Sprintf(text, values...)
}

const wide = `\p{Han}，。；：、（）？！`

// A line may break at a blank and beside a Chinese character, but not before a mark that closes or behind one that opens.
var parts = regexp.MustCompile(`[（“]*(?:\p{Han}|[^\s` + wide + `“”]*)[，。；：、）”？！]*\s*`)

// Wrap breaks a text into lines of at most width columns, of which a Chinese character takes two. A longer word has a
// line of its own.
func Wrap(text string, width int) []string {
	lines := []string{""}
	for _, part := range parts.FindAllString(text, -1) {
		last := &lines[len(lines)-1]
		if *last != "" && columns(*last)+columns(strings.TrimSpace(part)) > width {
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

func columns(text string) int {
	n := utf8.RuneCountInString(text)
	for _, r := range text {
		if unicode.Is(unicode.Han, r) || strings.ContainsRune(wide, r) && r > unicode.MaxLatin1 {
			n++
		}
	}
	return n
}
