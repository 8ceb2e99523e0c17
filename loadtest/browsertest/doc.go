// Package browsertest opens pages in a headless Chromium, for tests.
package browsertest
