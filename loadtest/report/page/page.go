package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/report"
)

//go:embed page.css
var styleSource string

//go:embed *.html
var templates embed.FS

// Write writes r as a page.
func Write(w io.Writer, r report.Report) error {
	return execute(w, "page.html", struct {
		Policy string
		Style  template.CSS
		view
	}{policy(styleSource), template.CSS(styleSource), newView(r)}) //nolint:gosec // the style is our own file
}

// WriteResult writes what the page of r says, without its frame and heading, for
// a page that has Style and what WritePatterns writes.
func WriteResult(w io.Writer, r report.Report) error { return execute(w, "result", newView(r)) }

// WritePatterns writes what the charts' hatches and dots refer to. A page needs it
// once.
func WritePatterns(w io.Writer) error { return execute(w, "patterns", nil) }

// Style is the page's CSS.
func Style() string { return styleSource }

func execute(w io.Writer, name string, data any) error {
	t, err := template.New("").Funcs(template.FuncMap{"comma": humanize.Comma, "rate": rate, "ms": milliseconds}).ParseFS(templates, "*.html")
	if err != nil {
		return fmt.Errorf("templates of the HTML report: %w", err)
	}
	return t.ExecuteTemplate(w, name, data)
}

// policy lets the page load nothing and have no style but this one.
func policy(style string) string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'"
}
