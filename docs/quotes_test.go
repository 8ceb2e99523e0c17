// Package docs_test checks what documents and comments say about the whole repository.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A test quotes the promise that it proves. In the comment above a test, and in every comment that begins with a quotation
// mark, each text in double quotes stands word for word in a document, a comment or a help text. Capitals, line breaks and
// a full stop at the end do not count. [...] leaves words out.
func TestQuotes(t *testing.T) {
	var texts strings.Builder
	quotes := map[string][]string{} // by place
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && len(name) > 2 && name[0] == '.' || name == "node_modules":
			return fs.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			return quotesOf(path, quotes)
		case entry.Type().IsRegular() && regexp.MustCompile(`\.(go|md|ya?ml|lua|sql|json)$`).MatchString(name):
			text, err := os.ReadFile(path)
			texts.WriteString(folded(string(text)) + "\n")
			return err
		}
		return nil
	})
	if err != nil || len(quotes) < 100 {
		t.Fatalf("got %d quotes, %v", len(quotes), err)
	}
	all := texts.String()
	for place, found := range quotes {
		for _, quote := range found {
			for _, part := range regexp.MustCompile(`\[.*?\]`).Split(quote, -1) {
				if !strings.Contains(all, strings.TrimRight(folded(part), ".,:;")) {
					t.Errorf("%s: %q stands nowhere", place, strings.Join(strings.Fields(part), " "))
				}
			}
		}
	}
}

// quotesOf adds the quotes of a file.
func quotesOf(path string, quotes map[string][]string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	tests := map[*ast.CommentGroup]bool{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			tests[f.Doc] = regexp.MustCompile(`^(Test|Fuzz)`).MatchString(f.Name.Name)
		}
	}
	for _, comment := range file.Comments {
		if text := comment.Text(); tests[comment] || strings.HasPrefix(text, `"`) {
			for i, part := range strings.Split(text, `"`) {
				if i%2 == 1 {
					place := files.Position(comment.Pos()).String()
					quotes[place] = append(quotes[place], part)
				}
			}
		}
	}
	return nil
}

var (
	marker = regexp.MustCompile(`(?m)^\s*((//|#|--|>)\s*)*(- +)?`)
	markup = strings.NewReplacer("`", "", "[", "", "]", "", "*", "", "$$", "$")
)

// folded returns a text without line breaks, comment markers, markup and capitals.
func folded(text string) string {
	return strings.ToLower(strings.Join(strings.Fields(markup.Replace(marker.ReplaceAllString(text, ""))), " "))
}
