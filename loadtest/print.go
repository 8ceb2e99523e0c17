package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/stats"
)

// The widths of the output and of the help, in columns of a terminal.
const (
	screenWidth = 80
	helpWidth   = 100
)

// screen has the destinations of the output.
type screen struct {
	out      io.Writer // for the headline, the table and the explanation
	json     io.Writer // for the JSON of --json -
	progress io.Writer
	live     bool // progress is a terminal
	colour   bool // out is a terminal that may be coloured
	lang     string
}

// newScreen returns a screen. With --json -, stdout has nothing but the JSON.
func newScreen(e environment, json string) screen {
	s := screen{out: e.stdout, json: e.stdout, progress: e.stderr}
	if json == "-" {
		s.out = e.stderr
	}
	dumb := e.getenv("TERM") == "dumb"
	s.live = e.terminal(e.stderr) && !dumb
	s.colour = e.terminal(s.out) && !dumb && e.getenv("NO_COLOR") == ""
	return s
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// print writes a line of progress before or between races.
func (s screen) print(line string) { fmt.Fprintln(s.progress, line) }

// show prints the table and its explanation.
func (s screen) show(r result.Report) error {
	if len(r.Strategies) == 0 {
		return nil
	}
	_, err := fmt.Fprint(s.out, s.table(r), "\n", s.explanation(r))
	return err
}

// table returns a table with a line for each strategy. It leaves out columns of zeros.
func (s screen) table(r result.Report) string {
	columns := slices.DeleteFunc(result.Columns(), func(c result.Column) bool {
		return !slices.ContainsFunc(r.Strategies, func(s result.Strategy) bool { return c.Number(s) > 0 })
	})
	header := table.Row{lang.Text(s.lang, "strategy")}
	for _, c := range columns {
		header = append(header, lang.Text(s.lang, c.Name))
	}
	var rows []table.Row
	for _, strategy := range r.Strategies {
		row := table.Row{strategy.Name}
		for _, c := range columns {
			row = append(row, c.Show(strategy))
		}
		rows = append(rows, append(row, s.verdict(strategy)))
	}
	return stats.Fold(screenWidth, append(header, lang.Text(s.lang, "verdict")), rows, 2, len(columns)+1)
}

// verdict returns the verdict on a strategy. A wrong strategy that was not caught is neither good nor bad news.
func (s screen) verdict(strategy result.Strategy) string {
	if strategy.NotCaught() {
		return lang.Text(s.lang, "not caught")
	}
	return s.paint(strategy.Correct(), lang.Text(s.lang, string(strategy.Verdict)))
}

// paint colours good news green and other news red. It does not use go-pretty, which decides by stdout alone.
func (s screen) paint(good bool, words string) string {
	switch {
	case !s.colour:
		return words
	case good:
		return "\x1b[32m" + words + "\x1b[0m"
	}
	return "\x1b[31m" + words + "\x1b[0m"
}

// explanation says for each strategy what its lesson is and what happened, and at the end whether the
// strategies were as they are designed to be.
func (s screen) explanation(r result.Report) string {
	indent := 0
	for _, strategy := range r.Strategies {
		indent = max(indent, len(strategy.Name)+2)
	}
	var b strings.Builder
	for _, strategy := range r.Strategies {
		lang.Hang(&b, screenWidth, strategy.Name, indent, lang.Text(s.lang, strategy.Lesson))
		lang.Hang(&b, screenWidth, "", indent, strategy.Outcome(s.lang))
		for _, remark := range strategy.Remarks(s.lang) {
			lang.Hang(&b, screenWidth, "", indent, "- "+remark)
		}
		b.WriteByte('\n')
	}
	if len(r.NotRun) > 0 {
		b.WriteString(lang.Text(s.lang, "Not run:") + "\n")
		for _, n := range r.NotRun {
			lang.Hang(&b, screenWidth, n.Name, max(indent, len(n.Name)+2), lang.Text(s.lang, n.Reason)+lang.Text(s.lang, "."))
		}
		b.WriteByte('\n')
	}
	return b.String() + s.paint(!r.Broken(), r.Expected(s.lang)) + "\n"
}

// follow shows the progress of a race on a terminal. end stops it and prints the last line.
func (s screen) follow(ctx context.Context, strategy string, buyers int, t *crowd.Tally) (end func()) {
	line := func() string {
		line := lang.Text(s.lang, "%s: %s of %s buyers connected, %s orders, %s refused", strategy, humanize.Comma(t.Connected.Load()),
			humanize.Comma(int64(buyers)), humanize.Comma(t.Ordered.Load()), humanize.Comma(t.Refused.Load()))
		if n := t.Errors.Load(); n > 0 {
			line += lang.Text(s.lang, ", %s errors", humanize.Comma(n))
		}
		return line
	}
	const clearLine = "\r\x1b[K"
	var shown sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	if s.live {
		shown.Go(func() {
			for shopclient.Pause(ctx, 100*time.Millisecond) {
				fmt.Fprint(s.progress, clearLine+text.Snip(line(), screenWidth-1, "…"))
			}
			fmt.Fprint(s.progress, clearLine)
		})
	}
	return func() {
		stop()
		shown.Wait()
		s.print(line())
	}
}

// firstFew passes on as many writes as are left. slog writes each record at once, one at a time.
type firstFew struct {
	to   io.Writer
	left int
}

func (f *firstFew) Write(p []byte) (int, error) {
	if f.left == 0 {
		return len(p), nil
	}
	f.left--
	return f.to.Write(p)
}
