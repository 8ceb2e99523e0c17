package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// progress shows what is going on: on a terminal in one line that changes,
// elsewhere in a line for each thing that ended.
type progress struct {
	out  io.Writer
	live bool
	what string
}

func newProgress(getenv func(string) string, out io.Writer) *progress {
	f, ok := out.(*os.File)
	return &progress{out: out, live: ok && term.IsTerminal(int(f.Fd())) && getenv("TERM") != "dumb"}
}

const clearLine = "\r\x1b[K"

// say shows a step that takes seconds.
func (p *progress) say(step string) {
	if p.live {
		fmt.Fprintf(p.out, "%s%s...", clearLine, step)
		return
	}
	fmt.Fprintln(p.out, step)
}

// at shows who is measured from now on.
func (p *progress) at(name, part, who string) {
	p.what = fmt.Sprintf("%s, %s: %s", name, part, who)
	if p.live {
		fmt.Fprintf(p.out, "%s%s...", clearLine, p.what)
	}
}

// ended shows what came of it.
func (p *progress) ended(r round) {
	if p.live {
		return
	}
	fmt.Fprintf(p.out, "%s: %s answers/s, p50 %s, %d errors\n", p.what, whole(r.OrdersPerSecond+r.RefusalsPerSecond), millis(r.P50), r.Errors)
}

// done makes room for a table.
func (p *progress) done() {
	if p.live {
		fmt.Fprint(p.out, clearLine)
	}
}
