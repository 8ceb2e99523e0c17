package step

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Recording is a lesson as it was played, to be stepped through.
type Recording struct {
	Mistake []Position `json:"mistake"` // after each number of acts, from 0
	Remedy  []Position `json:"remedy"`  // beside each of these, its events with the numbers of the mistake's acts
}

// Record plays a lesson, and its remedy in the same schedule, once. Names and fences are Readable. The errors are the
// errors of Position.
func (p *Player) Record(ctx context.Context, l Lesson) (r Recording, err error) {
	mistake, left, err := p.keep(ctx, l.Schedule, plan{each: true})
	if err != nil {
		return r, err
	}
	remedy, right, err := p.keep(ctx, l.remedySchedule(), plan{each: true, loose: true})
	if err != nil {
		return r, err
	}
	for i := range right {
		right[i].of = max(0, right[i].of-len(l.More))
	}
	beside := sideBySide(left, right)
	for i, done := range beside {
		wrong, right := mistake[i], remedy[done]
		if l.Wrong != nil {
			wrong.Wrong = slices.IndexFunc(wrong.Events, l.Wrong.isLike)
		}
		right.Saved = slices.IndexFunc(right.Events, l.Saved.isLike)
		right.number(beside)
		wrong.Readable()
		right.Readable()
		r.Mistake, r.Remedy = append(r.Mistake, wrong), append(r.Remedy, right)
	}
	return r, nil
}

// sideBySide returns how many decisions of the right are shown beside each number of the left's. An act
// of the schedule, such as "B runs", begins and ends at the same time on both sides. What comes after
// the schedule belongs to its last act.
func sideBySide(left, right []decision) []int {
	shown := []int{0}
	for i := 0; i < len(left); {
		end := i
		for end < len(left) && left[end].of == left[i].of {
			end++
		}
		begun, due := shown[i], len(right)
		if end < len(left) {
			due = begun
			for due < len(right) && right[due].of <= left[i].of {
				due++
			}
		}
		n := end - i
		for ; i < end; i++ {
			shown = append(shown, due-(due-begun)*(end-i-1)/n)
		}
	}
	return shown
}

// number counts the acts of events as on the left of sideBySide.
func (p *Position) number(beside []int) {
	p.Events = slices.Clone(p.Events)
	for i, e := range p.Events {
		if e.Act >= 0 {
			p.Events[i].Act = slices.IndexFunc(beside, func(done int) bool { return done > e.Act }) - 1
		}
	}
}

// Readable names the owners of locks, whose names are random, by their buyers, and counts fences, which are times in
// microseconds, from 7.
func (p *Position) Readable() {
	r := readable{names: map[string]string{}, owned: map[string]int{}}
	p.Events = slices.Clone(p.Events)
	for i := range p.Events {
		e := &p.Events[i]
		e.Text, e.Answer = r.text(e.Text, e.Actor), r.text(e.Answer, e.Actor)
	}
	for i, b := range p.Buyers {
		p.Buyers[i].Next = r.text(b.Next, b.Name)
	}
	if fence, err := strconv.ParseInt(r.names[strconv.FormatInt(p.Stock.Fence, 10)], 10, 64); err == nil {
		p.Stock.Fence = fence
	}
}

// readable replaces what differs each time a schedule is played.
type readable struct {
	names  map[string]string // by what they replace
	owned  map[string]int    // names that a buyer has as an owner
	fences int
}

// unreadable matches the beginning of a random name, and microseconds since 1970.
var unreadable = regexp.MustCompile(`\b(?:[A-Z2-7]{6}…|\d{16})`)

func (r *readable) text(text, actor string) string {
	return unreadable.ReplaceAllStringFunc(text, func(found string) string {
		if r.names[found] == "" {
			r.names[found] = r.name(actor, !strings.HasSuffix(found, "…"))
		}
		return r.names[found]
	})
}

const firstFence = 7

func (r *readable) name(actor string, fence bool) string {
	if fence {
		r.fences++
		return strconv.Itoa(firstFence - 1 + r.fences)
	}
	if r.owned[actor]++; r.owned[actor] > 1 { // it tries again
		return fmt.Sprint("owner-", actor, r.owned[actor])
	}
	return "owner-" + actor
}
