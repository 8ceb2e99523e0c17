// Loadtest sends a crowd of buyers to a shop and checks what it sold.
//
// For each strategy it goes
//
//	start shops -> put fresh SKUs up for sale -> race -> audit -> recheck -> verdict
//
// and reaches the shops over HTTP only. The verdict comes from the shop's own audit and from the buyers' log together;
// neither is believed alone.
//
// The parts: crowd sends the orders, shopclient speaks to a shop, shops starts some or finds them, result judges and is
// the model of what came of it, which the terminal, JSON and web show. step plays two buyers against each other, by one
// schedule or by all. faults breaks shops while they sell, bench measures, designs compares the strategies with what others
// have built, and lang has the Chinese of what the others explain.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"example.com/shop/internal/app"
	"example.com/shop/loadtest/bench"
	"example.com/shop/loadtest/designs"
	"example.com/shop/loadtest/faults"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shops"
	"example.com/shop/loadtest/step"
	"example.com/shop/loadtest/web"
)

// commands is the command line. Each command is a struct of its flags that has Run, and may have Validate, called by
// kong, and Footer, which stands below the flags in its help.
type commands struct {
	Race    raceCommand     `cmd:"" default:"withargs" help:"${race}"`
	Step    step.Command    `cmd:"" help:"${step}"`
	Explore step.Explore    `cmd:"" help:"${explore}"`
	Bench   bench.Command   `cmd:"" help:"Measures orders per second over HTTP by each strategy."`
	Faults  faults.Command  `cmd:"" help:"${faults}"`
	Designs designs.Command `cmd:"" help:"${designs}"`
}

func main() {
	// A write to a closed pipe is an error like any other: it must not end the program before it has cleaned up.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(app.UntilSignal(syscall.SIGHUP), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// environment is what a command gets from its surroundings.
type environment struct {
	getenv         func(string) string
	stdout, stderr io.Writer
	terminal       func(io.Writer) bool
}

// exitUnread is the exit code where the reader has ended, as in: loadtest --help | head. SIGPIPE ends other programs with it.
const exitUnread = 141

var (
	errBroken = errors.New("a strategy was not as it is designed to be") // the report says which
	errUsage  = errors.New("usage")                                      // the flags ask for what cannot be
)

// abouts are the texts above the flags in the commands' help.
var abouts = kong.Vars{ //nolint:gochecknoglobals // a constant
	"race": raceAbout, "step": step.About, "explore": step.ExploreAbout, "faults": faults.About,
	"designs": designs.About,
}

// run is the whole program. It returns the exit code, which raceCommand.Footer explains.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	helpShown := false
	around := environment{getenv, stdout, stderr, isTerminal}
	s := newScreen(around, "")
	parser := kong.Must(new(commands),
		kong.Name("loadtest"),
		abouts,
		kong.Writers(stdout, stderr),
		kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: helpWidth}),
		kong.Exit(func(int) { helpShown = true }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(around, step.Output{Out: s.out, Colour: s.colour, Progress: s.print}),
	)
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
		args = []string{"race", "--help"} // which names the other commands
	}
	parsed, err := parser.Parse(args)
	if helpShown {
		return app.ExitDone
	}
	if err == nil {
		err = app.RefuseEmpty(parsed)
	}
	if err == nil {
		err = parsed.Run()
	} else {
		err = fmt.Errorf("%w: %w", errUsage, err)
	}
	switch _, ofFile := errors.AsType[*fs.PathError](err); {
	case err == nil:
		return app.ExitDone
	case ofFile && errors.Is(err, syscall.EPIPE):
		return exitUnread
	case errors.Is(err, errUsage), errors.Is(err, step.ErrSchedule):
		fmt.Fprintf(stderr, "loadtest: %v\nEach command has a --help: go run ./loadtest --help\n", err)
		return app.ExitUsage
	case ctx.Err() != nil:
		err = errors.Join(errors.New("interrupted"), err)
	}
	fmt.Fprintln(stderr, "loadtest:", err)
	return app.ExitFailed
}

// help is kong's, and the footer of the command.
func help(options kong.HelpOptions, parsed *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, parsed); err != nil {
		return err
	}
	if node := parsed.Selected(); node != nil {
		if c, ok := node.Target.Addr().Interface().(interface{ Footer() string }); ok {
			_, err := io.WriteString(parsed.Stdout, c.Footer())
			return err
		}
	}
	return nil
}

// raceCommand holds one race per strategy. kong reads the flags into it.
type raceCommand struct {
	Strategies []string      `default:"none,mutex,redis" help:"Ways to sell, one race each; 'all' for every one that the shop knows but those that no race can show."`
	Buyers     int           `default:"1000" help:"Buyers who all want one unit at the same moment (1 to 100000)."`
	Stock      int64         `default:"100" help:"Units for sale in each race (1 to 1000000000)."`
	Think      time.Duration `default:"2ms" help:"Pause of the shop between reading stock and writing it (0s to 1s). It stands for the work of a real shop, and makes the race show on every run."`
	Instances  int           `default:"3" help:"Shop instances to start (1 to 16)."`
	Duration   time.Duration `placeholder:"D" help:"How long each buyer orders, again as soon as there is an answer (1s to 10m). Without it each buyer orders once."`
	shops.Servers
	Target string `placeholder:"URL" help:"Start nothing; race in a running teaching shop (cmd/lab), or a load balancer in front of several. A race in which orders expire is not judged: see --pay-within there."`
	UI     string `name:"ui" placeholder:"ADDR" help:"Open the lab in a browser instead: host:port, as in 127.0.0.1:8090. Without a host, this machine alone reaches it. Other flags pre-fill the form."`
	JSON   string `name:"json" placeholder:"FILE" help:"Write the report as JSON too; '-' for stdout, everything else then goes to stderr."`
	HTML   string `name:"html" placeholder:"FILE" help:"Write the report as one HTML file too, with the bars and the timeline of each race; it opens without a network."`
	SVG    string `name:"svg" placeholder:"FILE" help:"Write the bars of the report, units sold against units supplied, as an SVG file too."`
	lang.Flag
}

const raceAbout = `Shows how a shop oversells, and what keeps it from doing so.

For each strategy it starts three instances of the shop on a fresh embedded database, puts 100 units
up for sale, and lets 1,000 buyers buy at the same moment over HTTP. Then it counts.

'loadtest step' plays two buyers against each other, step by step, 'loadtest explore' plays every schedule of theirs,
'loadtest faults' breaks shops while they sell, 'loadtest bench' measures orders per second, and 'loadtest designs'
compares what others have built. Each has a --help of its own.
'loadtest bench --against DIR' compares two checkouts.`

// Footer stands below the flags in the help.
func (raceCommand) Footer() string {
	var b strings.Builder
	b.WriteString(`
Examples:
  go run ./loadtest                                   none, mutex and redis, compared
  go run ./loadtest --strategies mutex --instances 1  a mutex is enough for one instance
  go run ./loadtest --strategies none --think 0s      it oversells also without a pause
  go run ./loadtest --strategies all --buyers 5000    everything that needs no server
  go run ./loadtest --strategies all --servers docker everything, on servers in containers
  go run ./loadtest --html report.html                with the timeline of each race
  go run ./loadtest --ui 127.0.0.1:8090               in the browser: choose, run and watch
  go run ./loadtest --json -                          for programs
  go run ./loadtest --mysql 'shop:secret@tcp(127.0.0.1:3306)/shop' --redis 127.0.0.1:6379
  go run ./loadtest --target http://localhost:8080    a teaching shop that runs: go run ./cmd/lab
  go run ./loadtest --duration 10s --buyers 50        each orders again when answered
  go run ./loadtest step all                          why: two buyers, step by step (step --help)
  go run ./loadtest explore all                       proof: every schedule (explore --help)

The columns:
`)
	for _, c := range result.Columns() {
		hang(&b, helpWidth, "  "+c.Name, 13, c.Help)
	}
	hang(&b, helpWidth, "  verdict", 13, "correct; oversold; undersold; or inconsistent: neither, but the shop's books disagree with themselves or with what the buyers were told. The JSON has one of these four words. A strategy that is broken on purpose and looked correct is shown as not caught")
	b.WriteString(`
A column in which all is 0 is left out. Columns beyond the 80th of the terminal stand below.

'loadtest bench' has buyers order again and again, also carts of several SKUs, k6 sends orders at a
rate (open model, docs/load.md), and 'loadtest faults' pays, cancels and repeats orders.

A strategy without its server is listed below the table, and in the JSON as "not_run".

Exit code: 0 if every strategy that is designed to be correct was, and left no buyer without an
answer (errors 0), 1 if one did not or the test could not be done, 2 if the flags make no sense or
ask for a race that needs more file descriptors than this process may open.
That 'none' and 'mutex' oversell is what they are for. Some wrong ones need a crash or a pause at
the wrong moment and look correct in a race.
`)
	return b.String()
}

// Validate returns an InputError of the first flag that asks for too much, too little or what another flag excludes.
func (c *raceCommand) Validate() error {
	for _, check := range []struct {
		wrong      bool
		flag, want string
	}{
		{c.Buyers < 1 || c.Buyers > 100_000, "buyers", "want 1 to 100000"},
		{c.Stock < 1 || c.Stock > 1_000_000_000, "stock", "want 1 to 1000000000"},
		{c.Instances < 1 || c.Instances > 16, "instances", "want 1 to 16"},
		{c.Think < 0 || c.Think > time.Second, "think", "want 0s to 1s"},
		{c.Duration != 0 && (c.Duration < time.Second || c.Duration > 10*time.Minute), "duration", "want 1s to 10m"},
		{c.UI != "" && c.Duration != 0, "", "--ui shows buyers who order all at once; leave out --duration"},
		{len(c.Strategies) == 0, "strategies", "want at least one"},
		{c.Target != "" && (c.Named() || c.From == shops.Docker), "", "--target is a shop that runs already; --mysql, --redis, --redlock, --zookeeper and --servers are for shops that are started"},
		{c.Target != "" && !strings.HasPrefix(c.Target, "http://") && !strings.HasPrefix(c.Target, "https://"), "target", "want a URL such as http://localhost:8080"},
		{c.UI != "" && (c.JSON != "" || c.HTML != "" || c.SVG != ""), "", "--ui offers its reports in the browser; leave out --json, --html and --svg"},
		{c.HTML == "-" || c.SVG == "-", "", "--html and --svg want the name of a file; only --json writes to stdout"},
	} {
		if check.wrong {
			return &web.InputError{Field: check.flag, Text: check.want}
		}
	}
	if c.UI != "" {
		if _, err := web.Address(c.UI); err != nil {
			return &web.InputError{Field: "ui", Text: err.Error()}
		}
	}
	if err := (shops.Instances{Target: c.Target, Count: c.Instances}).CheckDescriptors(1, c.Buyers); err != nil {
		return &web.InputError{Field: "buyers", Text: err.Error() + ": raise it, or want fewer buyers"}
	}
	return errors.Join(c.Check(), checkFile("json", c.JSON), checkFile("html", c.HTML), checkFile("svg", c.SVG))
}

// checkFile finds out before the races whether a file can be written.
func checkFile(flag, file string) error {
	if file == "" || file == "-" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // the user names it, and a report is no secret
	if err != nil {
		return &web.InputError{Field: flag, Text: err.Error()}
	}
	return f.Close()
}

// all reports whether every strategy of the shop is to race.
func (c *raceCommand) all() bool { return slices.Equal(c.Strategies, []string{"all"}) }

// Run holds the races, or serves the page on which they are held.
func (c *raceCommand) Run(ctx context.Context, e environment) error {
	s := newScreen(e, c.JSON)
	s.lang = c.Lang
	return loadTest{raceCommand: *c, screen: s, log: newShopLog(e.stderr), limit: 2 * time.Minute}.run(ctx)
}

// command repeats the run. Addresses of servers may hold passwords and are left out, and so is where the report goes.
func (c *raceCommand) command() string {
	words := []string{"go run ./loadtest"}
	for _, f := range kong.Must(c).Model.Flags {
		text := fmt.Sprint(f.Target.Interface())
		switch f.Name {
		case "json", "html", "svg", "ui", "help":
			continue
		case "instances":
			if c.Target != "" {
				continue
			}
		case "mysql", "redis", "redlock", "zookeeper":
			if c.From == shops.Docker { // these have addresses of their own once they run
				continue
			}
			text = f.PlaceHolder
		case "strategies":
			text = strings.Join(c.Strategies, ",")
		case "target":
			text = withoutPassword(c.Target)
		}
		if text != f.Default && (f.Default != "" || !f.Target.IsZero()) {
			words = append(words, "--"+f.Name, text)
		}
	}
	return strings.Join(words, " ")
}

func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "URL"
	}
	return u.Redacted()
}
