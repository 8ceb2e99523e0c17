package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// "A test runs this session and compares the answers": the commands of docs/api.md do what it shows, up to ids and
// times, of which each is the same wherever it comes again.
func TestSession(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```console\n")
	text, _, _ := strings.Cut(rest, "```\n")
	session := readSession(anonymous(text))
	if len(session) == 0 {
		t.Fatal("docs/api.md has no session: want a block that begins with ```console")
	}

	s := startShop(t, "--pay-within", "10s")
	here := strings.NewReplacer("http://127.0.0.1:8080", s.url, "http://127.0.0.1:8081", s.operator)
	var script strings.Builder
	for _, step := range session {
		fmt.Fprintf(&script, "printf '%%s\\n' %s\n%s\n", "'"+strings.ReplaceAll("$ "+step.command, "'", `'\''`)+"'", here.Replace(step.command))
	}
	began := time.Now()
	output := shell(t, script.String(), "OPERATOR="+bearer(s.shown(t, "OPERATOR=")),
		"TOKEN="+bearer(s.shown(t, "TOKEN=")), "PAYMENTS="+bearer(s.shown(t, "PAYMENTS=")))
	t.Logf("the session took %v", time.Since(began).Round(time.Millisecond))
	for i, got := range readSession(anonymous(output)) {
		if want := session[i]; withoutBlanks(got.answer) != withoutBlanks(want.answer) {
			t.Errorf("$ %s\ngot\n%swant, by docs/api.md,\n%s", got.command, got.answer, want.answer)
		}
	}
}

// bearer returns the token of a header.
func bearer(header string) string { return strings.TrimPrefix(header, "Authorization: Bearer ") }

// step is a command of a session and what is answered.
type step struct{ command, answer string }

// readSession reads one. A command begins with "$ " and goes on in the next line
// after a backslash.
func readSession(text string) (session []step) {
	goesOn := false
	for line := range strings.Lines(text) {
		command, begins := strings.CutPrefix(line, "$ ")
		if begins {
			session = append(session, step{})
		} else if len(session) == 0 {
			continue
		}
		last := &session[len(session)-1]
		switch {
		case begins || goesOn:
			last.command += strings.TrimSuffix(command, "\n")
			if goesOn = strings.HasSuffix(last.command, "\\"); goesOn {
				last.command += "\n"
			}
		default:
			last.answer += line
		}
	}
	return session
}

var ofOneRun = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// anonymous returns a text with a number for each id and each time in it.
func anonymous(text string) string {
	numbers := map[string]string{}
	return ofOneRun.ReplaceAllStringFunc(text, func(found string) string {
		if numbers[found] == "" {
			numbers[found] = fmt.Sprintf("#%d", len(numbers)+1)
		}
		return numbers[found]
	})
}

// withoutBlanks lets the page break its lines.
func withoutBlanks(text string) string { return strings.Join(strings.Fields(text), "") }
