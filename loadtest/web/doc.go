// Package web shows a load test in HTML: as a report in one file, and as a page in the browser from which races are
// started and watched, and schedules played step by step (Serve).
//
// The report needs nothing but itself: no script, font or image from elsewhere, and its Content-Security-Policy forbids
// them. Its charts are SVG, drawn when it is written, with widths in percent, so that they fit a phone, a screen and
// paper. What a colour means, a word and a pattern say as well.
package web
