// Package measure lets a peer work and counts: turns, waits, who got them, and
// whether the lock did what it is for.
//
// A turn is an acquisition, a pass through what the lock guards, and the release.
// A turn that began before the time was up is waited for, so that somebody who
// starves shows in the longest wait, but it is counted only if it ended in time.
//
// A Watchdog stands beside every measurement. A peer that makes no progress is
// cancelled, reported as hung, and the run goes on without it.
package measure
