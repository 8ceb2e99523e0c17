package step

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const lessons = "../../docs/lessons.md"

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fenced returns the code blocks of a page in a language.
func fenced(page, language string) []string { return find(page, "(?s)```"+language+"\n(.*?)```") }

// compareLessons compares the page with plays held now: the table, and each timeline. Between two buyers, the order of
// events that do not wait for each other is left to chance.
func compareLessons(t *testing.T, printed, whole string, want int) {
	t.Helper()
	page := readFile(t, lessons)
	now := map[string]timeline{}
	for _, p := range timelines(whole) {
		now[p.title] = p
	}
	shown := 0
	for _, block := range fenced(page, "text") {
		for _, p := range timelines(block) {
			if strings.HasPrefix(p.title, "repeatable-read:") || strings.HasPrefix(p.title, "serializable:") {
				continue // on MySQL alone, which ends one of two at will
			}
			shown++
			held, ok := now[p.title]
			if !ok {
				t.Errorf("%s is not among the plays of now:\n%s", p.title, whole)
				continue
			}
			for buyer, rows := range p.rows {
				held.rows[buyer], p.rows[buyer] = untimed(held.rows[buyer], rows), untimed(rows, rows)
			}
			if diff := cmp.Diff(held.rows, p.rows); diff != "" || !strings.HasPrefix(held.after, p.after) || p.after == "" {
				t.Errorf("%s: (-now +page):\n%s\nthen got %q, want %q", p.title, diff, held.after, p.after)
			}
		}
	}
	if shown != want {
		t.Errorf("%d timelines, want %d", shown, want)
	}
	row := regexp.MustCompile(`(?m)^(?:lesson +schedule .*|[a-z-]+ +[a-z-]+[0-9*]*:\w+ .*(?:passed|failed))$`)
	if diff := cmp.Diff(row.FindAllString(printed, -1), row.FindAllString(page, -1)); diff != "" {
		t.Errorf("table (-now +page):\n%s", diff)
	}
}

// untimed returns a buyer's rows without those that only a slow machine adds to the page's. At the end are those that do not
// wait for the others: renewals.
func untimed(rows, page []string) []string {
	var steps, others []string
	for _, row := range rows {
		switch renewal := strings.HasPrefix(row, "EVAL renew "); {
		case (renewal || row == "lock lost") && !slices.Contains(page, row):
		case renewal:
			others = append(others, row)
		default:
			steps = append(steps, row)
		}
	}
	slices.Sort(others)
	return append(steps, others...)
}

// timeline is a play as step prints it, without what differs each time.
type timeline struct {
	title string
	rows  map[string][]string // by buyer
	after string              // the text below
}

// timelines finds the plays in what step printed, or in a part of it.
func timelines(text string) []timeline {
	titles := regexp.MustCompile(`(?m)^[a-z-]+[0-9*]*:\S+: (passed|failed)$`).FindAllStringIndex(text, -1)
	var plays []timeline
	for i, title := range titles {
		end := len(text)
		if i+1 < len(titles) {
			end = titles[i+1][0]
		}
		head, below, _ := strings.Cut(strings.TrimPrefix(text[title[1]:end], "\n"), "\n")
		lines, after, _ := strings.Cut(below, "\n\n")
		plays = append(plays, timeline{text[title[0]:title[1]], rows(head, lines), strings.Join(strings.Fields(after), " ")})
	}
	return plays
}

// rows joins the lines that are one event: the first of them has the time. What differs each time is replaced: owners,
// fences, times, counts, and whether Redis knew a script.
func rows(head, lines string) map[string][]string {
	begins := regexp.MustCompile(`^ *\d+\.\d  `)
	all := map[string][]string{}
	buyer := ""
	for line := range strings.Lines(lines) {
		time := begins.FindString(line)
		indent := len(line) - len(strings.TrimLeft(line[len(time):], " "))
		text := strings.Join(strings.Fields(line[len(time):]), " ")
		switch {
		case time == "":
			last := len(all[buyer]) - 1
			all[buyer][last] += " " + text
			continue
		case strings.HasPrefix(text, "-- "):
			buyer = "schedule"
		default:
			buyer = "A"
			for _, name := range []string{"B", "C"} {
				if at := strings.Index(head, name+", instance"); at >= 0 && indent >= at {
					buyer = name
				}
			}
		}
		all[buyer] = append(all[buyer], text)
	}
	for buyer := range all {
		for i, row := range all[buyer] {
			for _, chance := range [][2]string{
				{`\b[0-9A-Za-z]{6}…`, "owner"}, {`…[0-9a-f]{6}\b`, "id"}, {`\b\d{10,}\b`, "fence"}, {`held for \d+ ms`, "held for some ms"},
				{` \(\d+ times\)`, ""}, {`\bEVALSHA\b`, "EVAL"}, {`(wrong:short-lease:sku:mug owner) -> [01]$`, "$1"}, {` -+$`, ""},
			} {
				row = regexp.MustCompile(chance[0]).ReplaceAllString(row, chance[1])
			}
			all[buyer][i] = row
		}
		all[buyer] = slices.Compact(all[buyer]) // who polls
		asked := map[string]bool{}
		all[buyer] = slices.DeleteFunc(all[buyer], func(row string) bool { // time passes as it likes
			again := asked[row] && (strings.HasPrefix(row, "EVAL renew ") || strings.HasSuffix(row, " -> no, held for some ms more"))
			asked[row] = true
			return again || strings.HasSuffix(row, "release lock:{sku:mug} owner -> 0") // in the background
		})
	}
	return all
}
