// Package ui shows the race lab in a browser.
//
// Serve answers one page and what that page asks for:
//
//	GET  /                       the page: a form of strategies, buyers, stock
//	GET  /events                 how the run goes, as server-sent events
//	POST /run, POST /stop        begin a run, end it
//	POST /play                   play a scenario to its end, and tell each step of it
//	GET  /runs/{id}/result       what came of the last run, to stand on the page
//	GET  /runs/{id}/report.html  the same as a file, and report.json
//
// One run is held at a time, or one scenario played; who asks for a second is told
// so (409). A choice
// outside the limits of the command's flags is refused with the flag's own words
// beside its field (422).
//
// An event is the whole state, ten times a second as long as it changes. A page
// that lost its connection needs no history: the next event is the truth.
//
// Nothing leaves the page's origin: its Content-Security-Policy forbids it, and all
// it needs is embedded. Others' pages reach nothing here: a request that changes
// something must be of the same origin, and the Host of each must be an address, localhost or
// the name that was listened on, so that no name of somebody else's leads here.
package ui
