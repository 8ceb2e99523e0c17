package browsertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Sheet is what a page is read on.
type Sheet struct {
	Media, Scheme string
	Width         int64
	Background    string // that the page must have on it
}

// Screens are a phone and a desk, in light and dark.
func Screens() []Sheet {
	const light, dark = "rgb(252, 252, 251)", "rgb(20, 24, 29)"
	return []Sheet{
		{"screen", "light", 390, light}, {"screen", "light", 1440, light},
		{"screen", "dark", 390, dark}, {"screen", "dark", 1440, dark},
	}
}

// String names the sheet as tests and files do.
func (s Sheet) String() string { return fmt.Sprintf("%s-%s-%d", s.Media, s.Scheme, s.Width) }

// Lay lays the open page on a sheet.
func (s Sheet) Lay(t *testing.T, ctx context.Context) { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media: s.Media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s.Scheme}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(s.Width, 900)); err != nil {
		t.Fatal(err)
	}
}

// Check fails if the page does not fit its sheet. It keeps a picture in the folder
// that SHOP_SCREENSHOTS names, to be looked at.
func (s Sheet) Check(t *testing.T, ctx context.Context, name string) { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	content, err := chromedp.Run(ctx, chromedp.Evaluate[int64]("document.documentElement.scrollWidth"))
	if err != nil || content > s.Width {
		t.Errorf("%s: width of the content: got %d, %v, want at most %d, or it scrolls sideways", name, content, err, s.Width)
	}
	background, err := chromedp.Run(ctx, chromedp.Evaluate[string]("getComputedStyle(document.body).backgroundColor"))
	if err != nil || background != s.Background {
		t.Errorf("%s: background: got %s, %v, want %s", name, background, err, s.Background)
	}
	dir := os.Getenv("SHOP_SCREENSHOTS")
	if dir == "" {
		return
	}
	top := chromedp.Evaluate[bool]("scrollTo({ top: 0, behavior: 'instant' }), true") // where what is sticky belongs
	if _, err := chromedp.Run(ctx, top); err != nil {
		t.Fatal(err)
	}
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s%s.png", name, s)), picture, 0o600); err != nil { //nolint:gosec // whoever runs the test names the folder
		t.Error(err)
	}
}
