package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/logs/logbook"
	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/steps"
)

// "The timelines here are output of the command above each, with lines left out. No
// line was changed": plays that are held now have the same lines, in the same order.
func TestLessons_timelines(t *testing.T) {
	args := append([]string{"step", "--parallel", "4"}, slices.Sorted(maps.Keys(steps.Failures()))...)
	var stdout, stderr logbook.Book
	if code := run(t.Context(), args, noEnv, &stdout, &stderr); code != cli.OK {
		t.Fatalf("exit code %d, want %d; stderr:\n%s\n%s", code, cli.OK, stderr.String(), stdout.String())
	}
	now := map[string][]printed{}
	for _, p := range printedPlays(stdout.String()) {
		now[p.title] = append(now[p.title], p)
	}
	shown := 0
	for _, block := range fenced(lessonsPage(t), "text") {
		for _, p := range printedPlays(block) {
			shown++
			if len(now[p.title]) == 0 {
				t.Errorf("%s: no such play was held", p.title)
				continue
			}
			held := now[p.title][0]
			if missing := firstMissing(p.rows, held.rows); missing != "" {
				t.Errorf("%s: want, where the page has it,\n%s\nin\n%s", p.title, missing, strings.Join(held.rows, "\n"))
			}
			if len(p.rows) == 0 || p.after == "" || !strings.HasPrefix(held.after, p.after) {
				t.Errorf("%s: %d lines, and then got %q, want %q", p.title, len(p.rows), held.after, p.after)
			}
		}
	}
	if want := 2 * len(steps.Failures()); shown != want {
		t.Errorf("%d timelines, want %d", shown, want)
	}
}

// printed is a play as step prints it, without what differs each time.
type printed struct {
	title string
	rows  []string // with the column of each
	after string   // the text below
}

// printedPlays finds the plays in what step printed, or in a part of it.
func printedPlays(text string) []printed {
	titles := regexp.MustCompile(`(?m)^\S+ in \S+: (passed|failed)$`).FindAllStringIndex(text, -1)
	var plays []printed
	for i, title := range titles {
		end := len(text)
		if i+1 < len(titles) {
			end = titles[i+1][0]
		}
		p := printed{title: text[title[0]:title[1]]}
		_, below, _ := strings.Cut(text[title[1]:end], "B, instance 2\n")
		timeline, after, _ := strings.Cut(below, "\n\n")
		p.rows, p.after = rows(timeline), strings.Join(strings.Fields(after), " ")
		plays = append(plays, p)
	}
	return plays
}

// rows joins the lines that are one event: the first of them has the time.
func rows(timeline string) []string {
	begins := regexp.MustCompile(`^ *\d+\.\d  `)
	right := strings.Repeat(" ", 20)
	var rows []string
	for line := range strings.Lines(timeline) {
		time := begins.FindString(line)
		text := strings.Join(strings.Fields(line[len(time):]), " ")
		switch {
		case time == "" && len(rows) > 0:
			rows[len(rows)-1] += " " + text
		case strings.HasPrefix(line[len(time):], right):
			rows = append(rows, "B: "+text)
		default:
			rows = append(rows, "A: "+text)
		}
	}
	for i := range rows {
		rows[i] = withoutChance(rows[i])
	}
	return rows
}

// withoutChance replaces what differs each time: owners, fences, times, counts, and
// whether Redis knew a script already.
func withoutChance(row string) string {
	for _, chance := range []struct{ what, by string }{
		{`\b[0-9A-Za-z]{6}…`, "owner"},
		{`\b\d{10,}\b`, "fence"},
		{`held for \d+ ms`, "held for some ms"},
		{` \(\d+ times\)`, ""},
		{`\bEVALSHA\b`, "EVAL"},
		{` -+$`, ""},
	} {
		row = regexp.MustCompile(chance.what).ReplaceAllString(row, chance.by)
	}
	return row
}

// firstMissing returns the first of the rows that does not come in all where it should:
// after those before it.
func firstMissing(rows, all []string) string {
	for _, row := range rows {
		i := slices.Index(all, row)
		if i < 0 {
			return row
		}
		all = all[i+1:]
	}
	return ""
}

// A line that is not in the play, or not in its place, is noticed.
func TestLessons_notices(t *testing.T) {
	t.Parallel()
	const play = "none in lost-update: failed\n      ms  A, instance 1        B, instance 2\n" +
		"     3.5  read -> 1 unit\n     6.1                                                UPDATE skus\n" +
		"                                                          -> 1 row\n     8.0  -- A: goes on ----\n\n  2 sold.\n"
	want := []string{"A: read -> 1 unit", "B: UPDATE skus -> 1 row", "A: -- A: goes on"}
	got := printedPlays(play)
	if len(got) != 1 || !slices.Equal(got[0].rows, want) || got[0].after != "2 sold." {
		t.Fatalf("got %q, want the rows %q", got, want)
	}
	for _, tt := range []struct {
		rows []string
		want string
	}{
		{want[1:], ""},
		{[]string{want[2], want[0]}, want[0]},
		{[]string{want[0], "A: UPDATE skus -> 1 row"}, "A: UPDATE skus -> 1 row"},
	} {
		if missing := firstMissing(tt.rows, want); missing != tt.want {
			t.Errorf("%q: got %q, want %q", tt.rows, missing, tt.want)
		}
	}
}
