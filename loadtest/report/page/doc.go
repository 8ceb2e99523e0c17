// Package page writes a report as one HTML file for people.
//
// The file needs nothing but itself: no script, font or image from elsewhere, and
// its Content-Security-Policy forbids them. Its charts are SVG, drawn when it is
// written, with widths in percent, so that they fit a phone, a screen and paper.
// It follows the reader's choice of light or dark. Where colour tells something,
// a word and a pattern tell it, too.
package page
