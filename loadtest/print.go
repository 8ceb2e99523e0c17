package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
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
	"example.com/shop/loadtest/result"
)

// screenWidth is how many columns of a terminal the output fits.
const screenWidth = 100

// screen is where output goes.
type screen struct {
	out      io.Writer // headline, table, explanation
	json     io.Writer // the JSON of --json -
	progress io.Writer
	live     bool // progress goes to a terminal
	colour   bool // out is a terminal that may be coloured
}

// newScreen leaves stdout to the JSON alone if it goes there.
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

// show prints the table and what it means.
func (s screen) show(r result.Report) error {
	if len(r.Strategies) == 0 {
		return nil
	}
	_, err := fmt.Fprint(s.out, s.table(r), "\n", s.explanation(r))
	return err
}

// table has one line per strategy, and below them what the load test cost.
func (s screen) table(r result.Report) string {
	rendered := s.render(r, "  ", screenWidth)
	if widest(rendered) > screenWidth {
		const narrowName = 13
		rendered = s.render(r, " ", narrowName)
	}
	if r.Harness != nil {
		rendered += "\n" + wrap(r.Harness.Sentence(), screenWidth) + "\n"
	}
	return rendered
}

func (s screen) render(r result.Report, gap string, nameWidth int) string {
	columns := result.Columns(result.Terminal)
	header := table.Row{"strategy"}
	for _, c := range columns {
		header = append(header, c.Name)
	}
	t := newTable(gap, append(header, "verdict"))
	for _, strategy := range r.Strategies {
		row := table.Row{breakAtHyphen(strategy.Name, nameWidth)}
		for _, c := range columns {
			row = append(row, c.Show(strategy))
		}
		t.AppendRow(append(row, s.verdict(strategy)))
	}
	return rendered(t, gap, 2, len(columns)+1)
}

// newTable has a line under the header and nothing else; gap stands before each column.
func newTable(gap string, header table.Row) table.Writer {
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true}
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = gap, ""
	t := table.NewWriter()
	t.SetStyle(style)
	t.AppendHeader(header)
	return t
}

// rendered returns the lines of a table whose columns from..to stand at the right,
// without the gap before the first column and without blanks at the ends.
func rendered(t table.Writer, gap string, from, to int) string {
	var right []table.ColumnConfig
	for number := from; number <= to; number++ {
		right = append(right, table.ColumnConfig{Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	var b strings.Builder
	for line := range strings.Lines(t.Render()) {
		b.WriteString(strings.TrimRight(string([]rune(line)[len(gap):]), " \n") + "\n")
	}
	return b.String()
}

// breakAtHyphen breaks a name that is too long after the last hyphen that fits.
func breakAtHyphen(name string, most int) string {
	if len(name) <= most {
		return name
	}
	i := strings.LastIndex(name[:most], "-") + 1
	if i == 0 {
		i = most
	}
	return name[:i] + "\n" + breakAtHyphen(name[i:], most)
}

func widest(lines string) int {
	var n int
	for line := range strings.Lines(lines) {
		n = max(n, text.StringWidthWithoutEscSequences(strings.TrimRight(line, "\n")))
	}
	return n
}

// verdict is the strategy's word. A wrong strategy that was not caught is neither good
// nor bad news.
func (s screen) verdict(strategy result.Strategy) string {
	switch {
	case strategy.NotCaught():
		return "not caught"
	case strategy.Correct():
		return s.paint(text.FgGreen, string(strategy.Verdict))
	}
	return s.paint(text.FgRed, string(strategy.Verdict))
}

// paint does not leave the decision to go-pretty, which asks about stdout.
func (s screen) paint(colour text.Color, words string) string {
	if !s.colour {
		return words
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, words)
}

// explanation has, for each strategy, its lesson and what happened in plain words, and
// at the end whether the strategies were as they are designed to be.
func (s screen) explanation(r result.Report) string {
	indent := 0
	for _, strategy := range r.Strategies {
		indent = max(indent, len(strategy.Name)+2)
	}
	var b strings.Builder
	for _, strategy := range r.Strategies {
		hang(&b, strategy.Name, indent, strategy.Lesson)
		hang(&b, "", indent, strategy.Outcome())
		hang(&b, "", indent, strategy.Unanswered())
		for i, row := range strategy.LockTimes() {
			if i == 0 {
				fmt.Fprintf(&b, "%*s%-10s%8s%8s\n", indent, "", "lock", "p50", "p99")
			}
			fmt.Fprintf(&b, "%*s%-10s%8s%8s\n", indent, "", row.Name, result.ShowWait(row.P50), result.ShowWait(row.P99))
		}
		hang(&b, "", indent, strategy.Overlapped())
		for _, remark := range strategy.Remarks() {
			hang(&b, "", indent, "- "+remark)
		}
		b.WriteByte('\n')
	}
	if len(r.NotRun) > 0 {
		b.WriteString("Not run:\n")
		for _, n := range r.NotRun {
			hang(&b, n.Name, max(indent, len(n.Name)+2), n.Reason+".")
		}
		b.WriteByte('\n')
	}
	lines := strings.Join(r.Promises(), "\n")
	switch {
	case len(r.Broken()) > 0:
		lines = s.paint(text.FgRed, lines)
	case slices.ContainsFunc(r.Strategies, func(s result.Strategy) bool { return s.PromisesCorrect }):
		lines = s.paint(text.FgGreen, lines)
	}
	return b.String() + lines + "\n"
}

// hang writes a paragraph that stands indented beside its name; nothing if it is empty.
func hang(b *strings.Builder, name string, indent int, paragraph string) {
	if paragraph == "" {
		return
	}
	for line := range strings.Lines(wrap(paragraph, screenWidth-indent)) {
		fmt.Fprintf(b, "%-*s%s\n", indent, name, strings.TrimSuffix(line, "\n"))
		name = ""
	}
}

// wrap breaks a paragraph at blanks, so that it fits so many columns.
func wrap(paragraph string, columns int) string {
	lines := strings.Split(text.WrapSoft(paragraph, columns), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// progress shows how a race goes: in place on a terminal, elsewhere line by line. It is
// a crowd.Watcher.
type progress struct {
	screen   screen
	strategy string
	buyers   int64
	done     chan struct{}
	wait     sync.WaitGroup
}

func (s screen) progressOf(strategy string, buyers int) *progress {
	return &progress{screen: s, strategy: strategy, buyers: int64(buyers), done: make(chan struct{})}
}

// Connecting starts showing the tally.
func (p *progress) Connecting(tally *crowd.Tally) {
	every := 2 * time.Second
	if p.screen.live {
		every = 100 * time.Millisecond
	}
	p.wait.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.show(tally, false)
			case <-p.done:
				p.show(tally, true)
				return
			}
		}
	})
}

// Ready releases the buyers at once.
func (p *progress) Ready(context.Context) {}

// Answered returns when the last line is written.
func (p *progress) Answered() {
	close(p.done)
	p.wait.Wait()
}

func (p *progress) show(t *crowd.Tally, last bool) {
	line := p.strategy + ": " + counts(t)
	if connected := t.Connected.Load(); connected < p.buyers && !last {
		line = fmt.Sprintf("%s: %s of %s buyers connected", p.strategy, humanize.Comma(connected), humanize.Comma(p.buyers))
	}
	if p.screen.live {
		line = "\r\x1b[K" + line
	}
	if last || !p.screen.live {
		line += "\n"
	}
	fmt.Fprint(p.screen.progress, line) // a terminal that is gone is no reason to stop a race
}

func counts(t *crowd.Tally) string {
	s := fmt.Sprintf("%s orders, %s refused", humanize.Comma(t.Ordered.Load()), humanize.Comma(t.Refused.Load()))
	if n := t.Errors.Load(); n > 0 {
		s += fmt.Sprintf(", %s errors", humanize.Comma(n))
	}
	return s
}

// newShopLog shows the first few errors of the shops that were started: an error of one
// buyer is often that of a thousand.
func newShopLog(w io.Writer) *slog.Logger {
	handler := slog.NewTextHandler(&firstFew{to: w, left: 5}, &slog.HandlerOptions{Level: slog.LevelError})
	return slog.New(handler).With("from", "shop")
}

// firstFew lets so many writes pass. slog writes each record at once, one at a time.
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
