package page_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/shop/loadtest/browsertest"
)

// "The file needs nothing but itself", and fits a phone, a screen and paper.
// SHOP_SCREENSHOTS=FOLDER keeps pictures, to be looked at; SHOP_REPORT=FILE takes
// the report of a real run for them.
func TestWrite_in_Chromium(t *testing.T) {
	ctx := browsertest.Start(t)
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, write(t, example()), 0o600); err != nil {
		t.Fatal(err)
	}
	if given := os.Getenv("SHOP_REPORT"); given != "" {
		path = given
	}
	file := "file://" + path
	heard := browsertest.Watch(t, ctx, func(url string) bool {
		address, _, _ := strings.Cut(url, "#")
		return address == file
	})
	paper := browsertest.Sheet{Media: "print", Scheme: "dark", Width: 700, Background: "rgb(255, 255, 255)"} // A4 between its margins
	for _, sheet := range append(browsertest.Screens(), paper) {
		t.Run(sheet.String(), func(t *testing.T) {
			sheet.Lay(t, ctx)
			if err := chromedp.Do(ctx, chromedp.Navigate(file)); err != nil {
				t.Fatal(err)
			}
			sheet.Check(t, ctx, "")
		})
	}
	for _, complaint := range heard.All() {
		t.Error(complaint)
	}
}
