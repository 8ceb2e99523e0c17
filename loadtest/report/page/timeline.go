package page

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/dustin/go-humanize"

	"example.com/shop/loadtest/report"
)

// timeline shows requests one below the other, on one axis of time.
type timeline struct {
	Sentence string
	Pair     bool
	Lanes    []lane

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

func newTimeline(s report.Strategy) *timeline {
	if s.Timeline == nil || len(s.Timeline.Requests) == 0 {
		return nil
	}
	all, pair := s.Timeline.Requests, s.Timeline.Pair
	shown := newWindow(all, pair)
	t := &timeline{Start: microseconds(shown.from), End: microseconds(shown.to)}
	t.Sentence, t.Pair = story(s)
	for i, r := range all {
		t.Lanes = append(t.Lanes, newLane(r, slices.Contains(pair, i), shown))
	}
	return t
}

// story is what the timeline shows, in one sentence.
func story(s report.Strategy) (sentence string, pair bool) {
	all := s.Timeline.Requests
	if i := s.Timeline.Pair; len(i) == 2 && max(i[0], i[1]) < len(all) && min(i[0], i[1]) >= 0 {
		a, b := all[i[0]], all[i[1]]
		return fmt.Sprintf("%s and %s both read %s and both wrote %s: what one of them took is not subtracted.",
			a.Buyer, b.Buyer, humanize.Comma(a.Seen), humanize.Comma(number(a.Wrote))), true
	}
	read := map[int64]int{}
	for _, r := range all {
		if r.Accepted {
			read[r.Seen]++
		}
	}
	for _, r := range all {
		if r.Accepted && r.Wrote == nil && read[r.Seen] > 1 {
			return fmt.Sprintf("%s accepted requests read %s, but none wrote back what it reckoned from that: the database subtracted for each.",
				humanize.Comma(int64(read[r.Seen])), humanize.Comma(r.Seen)), false
		}
	}
	return "Of these requests, no two that were accepted read the same stock.", false
}

func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func newLane(r report.Request, marked bool, w window) lane {
	l := lane{
		Buyer:      r.Buyer,
		Story:      did(r),
		Marked:     marked,
		Read:       w.at(r.Read),
		Seen:       humanize.Comma(r.Seen),
		SeenAt:     w.at(r.Read) + 1,
		SeenAnchor: "start",
		More:       max(r.Read, r.Committed, r.Released) > w.to,
	}
	if l.Read > 80 {
		l.SeenAt, l.SeenAnchor = l.Read-1, "end"
	}
	add := func(class, what string, from, to int64) {
		if from < to && from < w.to && to > w.from {
			l.Segments = append(l.Segments, segment{
				Class: class, Title: what + ": " + microseconds(to-from), X: w.at(from), Width: max(0.3, w.at(to)-w.at(from)),
			})
		}
	}
	reading := r.Begun
	if r.LockHeld > 0 {
		add("wait", "waits for the lock", r.LockAsked, r.LockHeld)
		reading = r.LockHeld
	}
	add("read", "reads", reading, r.Read)
	if r.Writing > 0 {
		add("think", "thinks", r.Read, r.Writing)
		add("write", "writes and commits", r.Writing, max(r.Written, r.Committed))
	}
	if r.Released > 0 && r.LockHeld > 0 {
		add("release", "gives the lock back", max(r.Read, r.Committed), r.Released)
	}
	return l
}

// did is what a request did, in a few words.
func did(r report.Request) string {
	read := "read " + humanize.Comma(r.Seen)
	switch {
	case r.Wrote != nil && r.Accepted:
		return read + ", wrote " + humanize.Comma(*r.Wrote)
	case r.Accepted:
		return read + ", the database subtracted"
	}
	return read + ", was refused"
}

// microseconds shows a short duration.
func microseconds(us int64) string {
	if us < 1000 {
		return strconv.FormatInt(us, 10) + " µs"
	}
	return milliseconds(float64(us) / 1000)
}
