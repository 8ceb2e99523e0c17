package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// screen is where output goes.
type screen struct {
	out      io.Writer // headline, table, explanation
	json     io.Writer // the JSON of --json -
	progress io.Writer
	live     bool // progress goes to a terminal
	colour   bool // out is a terminal that may be coloured
}

// newScreen leaves stdout to the JSON alone if it goes there.
func newScreen(getenv func(string) string, stdout, stderr io.Writer, json string) screen {
	s := screen{out: stdout, json: stdout, progress: stderr, live: terminal(stderr)}
	if json == "-" {
		s.out = stderr
	}
	dumb := getenv("TERM") == "dumb"
	s.live = s.live && !dumb
	s.colour = terminal(s.out) && !dumb && getenv("NO_COLOR") == ""
	return s
}

// tell writes a line on what is being done before the first race.
func (s screen) tell(line string) { fmt.Fprintln(s.progress, line) }

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
