package web

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
)

// timeline shows requests one below the other, on one axis of time.
type timeline struct {
	Sentence   string
	Pair       bool // two requests collided
	Lanes      []lane
	Start, End string // of the axis
}

// lane is one request.
type lane struct {
	Buyer, Story string
	Marked       bool // one of the pair
	Segments     []segment
	Read         percent
	Seen         string
	SeenAt       percent
	SeenAnchor   string
	More         bool // it goes on behind the end of the axis
}

type segment struct {
	Class, Title string
	X, Width     percent
}

func newTimeline(of *crowd.Timeline, language string) *timeline {
	if of == nil || len(of.Requests) == 0 {
		return nil
	}
	all, pair := of.Requests, of.Pair
	w := newWindow(all, pair)
	t := &timeline{Start: microseconds(w.from), End: microseconds(w.to), Pair: len(pair) > 0, Sentence: sentence(all, pair, language)}
	for i, r := range all {
		t.Lanes = append(t.Lanes, newLane(r, slices.Contains(pair, i), w, language))
	}
	return t
}

// sentence is what the timeline shows, in a language.
func sentence(all []crowd.Request, pair []int, language string) string {
	if len(pair) > 0 {
		a, b := all[pair[0]], all[pair[1]]
		return lang.Text(language, "%s and %s both read %s and both wrote %s: what one of them took is not subtracted.",
			a.Buyer, b.Buyer, humanize.Comma(a.Seen), humanize.Comma(*a.Wrote))
	}
	read := map[int64]int64{}
	for _, r := range all {
		if r.Accepted && r.Wrote == nil {
			if read[r.Seen]++; read[r.Seen] > 1 {
				return lang.Text(language, "Several accepted requests read %s, but none wrote back what it computed from that: the database subtracted for each.",
					humanize.Comma(r.Seen))
			}
		}
	}
	return lang.Text(language, "Of these requests, no two that were accepted read the same stock.")
}

// window is the part of a timeline that is shown, in microseconds.
type window struct{ from, to int64 }

// newWindow begins shortly before the first request works, however long it waited for the lock, and ends when all have
// read and those of interest have committed: the pair, or without one, all.
func newWindow(all []crowd.Request, pair []int) window {
	w := window{from: all[0].Read}
	for i, r := range all {
		w.from, w.to = min(w.from, cmp.Or(r.LockHeld, r.Begun)), max(w.to, r.Read)
		if len(pair) == 0 || slices.Contains(pair, i) {
			w.to = max(w.to, r.Committed, r.Released)
		}
	}
	margin := (w.to - w.from) / 20
	return window{from: max(0, w.from-margin), to: max(w.from+1, w.to+margin)}
}

// at is the place of a moment, at the edge if it is outside.
func (w window) at(us int64) percent {
	return share(min(max(us, w.from), w.to)-w.from, w.to-w.from)
}

func newLane(r crowd.Request, marked bool, w window, language string) lane {
	l := lane{
		Buyer: r.Buyer, Story: story(r, language), Marked: marked, Read: w.at(r.Read), Seen: humanize.Comma(r.Seen),
		SeenAt: w.at(r.Read) + 1, SeenAnchor: "start", More: max(r.Read, r.Committed, r.Released) > w.to,
	}
	if l.Read > 80 {
		l.SeenAt, l.SeenAnchor = l.Read-1, "end"
	}
	add := func(class, what string, from, to int64) {
		if from < to && from < w.to && to > w.from {
			l.Segments = append(l.Segments, segment{
				Class: class, Title: lang.Text(language, what) + ": " + microseconds(to-from), X: w.at(from), Width: max(0.3, w.at(to)-w.at(from)),
			})
		}
	}
	reading := r.Begun
	add("wait", "waits for the lock", r.LockAsked, r.LockHeld)
	if r.LockHeld < r.Read { // else it read before
		reading = max(r.Begun, r.LockHeld)
	}
	add("read", "reads", reading, r.Read)
	if r.Writing > 0 {
		add("think", "thinks", max(r.Read, r.LockHeld), r.Writing)
		add("write", "writes and commits", r.Writing, max(r.Written, r.Committed))
	}
	if r.LockHeld > 0 {
		add("release", "releases the lock", max(r.Read, r.Committed), r.Released)
	}
	return l
}

// story is what a request did, in a few words of a language.
func story(r crowd.Request, language string) string {
	seen := humanize.Comma(r.Seen)
	switch {
	case r.Wrote != nil && r.Accepted:
		return lang.Text(language, "read %s, wrote %s", seen, humanize.Comma(*r.Wrote))
	case r.Accepted:
		return lang.Text(language, "read %s, the database subtracted", seen)
	}
	return lang.Text(language, "read %s, was refused", seen)
}

// microseconds shows a short duration.
func microseconds(us int64) string {
	if us < 1000 {
		return fmt.Sprintf("%d µs", us)
	}
	return result.Milliseconds(float64(us) / 1000)
}
