// Loadtest sends a crowd of buyers to a shop and checks what it sold.
//
// For each strategy it takes these steps:
//
//	start shops -> put fresh SKUs up for sale -> race -> audit -> recheck -> verdict
//
// It reaches the shops over HTTP only. The verdict compares the shop's own audit with the buyers' log:
// neither is trusted alone.
//
// The packages: crowd sends the orders, shopclient speaks to a shop, shops starts or finds shops, and result judges a
// race and holds the report, which the terminal, JSON and web show. step plays two buyers against each other, by one
// schedule or by all schedules. faults breaks shops while they sell, bench measures, designs compares the strategies
// with designs of others, and lang has the Chinese texts.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// commands is the command line. Each command is a struct of its flags, with a method Run. It may have a method
// Validate, which kong calls, and a method Footer for the text below the flags in its help.
type commands struct {
	Race    raceCommand     `cmd:"" default:"withargs" help:"${race}"`
	Step    step.Command    `cmd:"" help:"${step}"`
	Explore step.Explore    `cmd:"" help:"${explore}"`
	Bench   bench.Command   `cmd:"" help:"Measures orders per second over HTTP, by each strategy."`
	Faults  faults.Command  `cmd:"" help:"${faults}"`
	Designs designs.Command `cmd:"" help:"${designs}"`
}

func main() {
	// A write to a closed pipe is an error: it must not end the program before it has cleaned up.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(app.UntilSignal(syscall.SIGHUP), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// environment has the surroundings of a command.
type environment struct {
	getenv         func(string) string
	stdout, stderr io.Writer
	terminal       func(io.Writer) bool
}

var errBroken = errors.New("a strategy was not as it is designed to be") // the report names it

// abouts are the texts above the flags in the help of the commands.
var abouts = kong.Vars{ //nolint:gochecknoglobals // a constant
	"race": raceAbout, "step": step.About, "explore": step.ExploreAbout, "faults": faults.About,
	"designs": designs.About,
}

// run is the whole program. It returns the exit code, which raceCommand.Footer explains.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	around := environment{getenv, stdout, stderr, isTerminal}
	s := newScreen(around, "")
	return app.Main(ctx, "loadtest", "", args, new(commands), func(parsed *kong.Context) error {
		err := parsed.Run(around, step.Output{Out: s.out, Colour: s.colour, Progress: s.print})
		switch {
		case errors.Is(err, step.ErrSchedule):
			return app.UsageError{Err: err}
		case err != nil && ctx.Err() != nil && !errors.Is(err, syscall.EPIPE):
			return errors.New("interrupted\n" + err.Error()) // which names what could not be cleaned up
		}
		return err
	}, abouts, kong.Writers(stdout, stderr), kong.Help(help))
}

// overview is the help without a command, on one screen.
const overview = `Usage: loadtest [COMMAND] [FLAGS]

Shows how a shop oversells, and what keeps it from overselling.

Commands:
  race     1,000 buyers want 100 units at the same moment. This is the default.
  step     Play a lesson: two buyers against each other, step by step.
  explore  Play every schedule of two buyers who want the last unit.
  faults   Break shops while they sell, and check every promise.
  bench    Measure orders per second, or compare two checkouts (--against DIR).
  designs  Compare the strategies with other ways to sell a scarce thing.

Examples:
  go run ./loadtest                      the shop oversells; with a lock it does not
  go run ./loadtest step none            why: the lost update, step by step
  go run ./loadtest --ui 127.0.0.1:8090  in the browser: races, lessons and a game

Help for a command, with its flags: go run ./loadtest COMMAND --help
Flags without a command are those of race: go run ./loadtest --strategies all
`

// help writes kong's help of a command and the command's footer, or the overview without a command.
func help(options kong.HelpOptions, parsed *kong.Context) error {
	node := parsed.Selected()
	if node == nil {
		_, err := io.WriteString(parsed.Stdout, overview)
		return err
	}
	if err := kong.DefaultHelpPrinter(options, parsed); err != nil {
		return err
	}
	if c, ok := node.Target.Addr().Interface().(interface{ Footer() string }); ok {
		_, err := io.WriteString(parsed.Stdout, c.Footer())
		return err
	}
	return nil
}

// raceCommand holds one race for each strategy. kong reads the flags into it.
type raceCommand struct {
	Strategies []string      `group:"The race" default:"none,mutex,redis" help:"Ways to sell, one race for each; 'all' for all that a race can show."`
	Buyers     int           `group:"The race" default:"1000" help:"Buyers who all want one unit at the same moment (1 to 100000)."`
	Stock      int64         `group:"The race" default:"100" help:"Units for sale in each race (1 to 1000000000)."`
	Think      time.Duration `group:"The race" default:"2ms" help:"Pause of the shop between reading the stock and writing it (0s to 1s). It stands for the work of a real shop, and makes the race show on every run."`
	Instances  int           `group:"The race" default:"3" help:"Shop instances to start (1 to 16)."`
	Duration   time.Duration `group:"The race" placeholder:"D" help:"How long to send orders (1s to 10m): each buyer orders again when answered. Without this flag, each buyer orders once."`
	shops.Servers
	Target string `group:"Servers" placeholder:"URL" help:"Start no shop, but race in a running teaching shop (cmd/lab), or in several behind a load balancer. Start that shop with a long --pay-within: if orders expire during a race, the race cannot be judged."`
	UI     string `group:"Output" name:"ui" placeholder:"ADDR" help:"Open the lab in a browser instead: host:port, as in 127.0.0.1:8090. Without a host, only this machine can reach it. The other flags pre-fill the form."`
	JSON   string `group:"Output" name:"json" placeholder:"FILE" help:"Also write the report as JSON; '-' for stdout, all other output then goes to stderr."`
	HTML   string `group:"Output" name:"html" placeholder:"FILE" help:"Also write the report as one HTML file, with charts and the timeline of each race. It opens without a network."`
	SVG    string `group:"Output" name:"svg" placeholder:"FILE" help:"Also write a picture for a slide, as an SVG file: the units that each strategy sold over time, against the supply."`
	CSV    string `group:"Output" name:"csv" placeholder:"FILE" help:"Also write the figures as CSV: a row for each strategy."`
	lang.Flag
}

const raceAbout = `Shows how a shop oversells, and what keeps it from overselling.

For each strategy, race starts three instances of the shop on a fresh embedded database, puts 100 units up for sale, and lets
1,000 buyers order at the same moment over HTTP. Then it counts.`

// Footer stands below the flags in the help.
func (raceCommand) Footer() string {
	var b strings.Builder
	b.WriteString(`
Examples:
  go run ./loadtest                                   none, mutex and redis, compared
  go run ./loadtest --strategies mutex --instances 1  a mutex is enough for one instance
  go run ./loadtest --strategies none --think 0s      the shop oversells even without a pause
  go run ./loadtest --strategies all --buyers 5000    everything that needs no server
  go run ./loadtest --strategies all --servers docker everything, on servers in containers
  go run ./loadtest --html report.html                with charts and the timeline of each race
  go run ./loadtest --svg picture.svg                 a picture for a slide
  go run ./loadtest --ui 127.0.0.1:8090               in the browser: choose, run and watch
  go run ./loadtest --json -                          for programs
  go run ./loadtest --mysql 'shop:secret@tcp(127.0.0.1:3306)/shop' --redis 127.0.0.1:6379
  go run ./loadtest --target http://localhost:8080    in a running teaching shop: go run ./cmd/lab
  go run ./loadtest --duration 10s --buyers 50        each buyer orders again when answered

The columns:
`)
	for _, c := range result.Columns() {
		lang.Hang(&b, helpWidth, "  "+c.Name, 13, c.Help)
	}
	lang.Hang(&b, helpWidth, "  verdict", 13,
		"correct; oversold; undersold; or inconsistent: the shop's books contradict themselves or the answers to the "+
			"buyers. The JSON has one of these four words. A wrong strategy that looked correct is shown as not caught")
	b.WriteString(`
Columns of zeros are left out. A table that is wider than 80 columns continues below.

If a strategy lacks its server, it is listed below the table, and in the JSON as "not_run".

To let buyers order carts of several SKUs, see loadtest bench; to send orders at a rate (open
model), see docs/load.md; to pay, cancel and repeat orders, see loadtest faults.

Exit code: 0 if every strategy that is designed to be correct was correct, and answered every
buyer (errors 0); 1 if not, or if the test could not be done; 2 if the flags make no sense, or if
the race needs more file descriptors than this process may open. 'none' and 'mutex' are expected
to oversell. Some wrong strategies look correct in a race: they need a crash or a pause at the
wrong moment.
`)
	return b.String()
}

// Validate returns an InputError for the first flag whose value is out of range or excluded by another flag.
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
		{c.UI != "" && c.Duration != 0, "", "--ui shows buyers who all order at once: leave out --duration"},
		{len(c.Strategies) == 0, "strategies", "want at least one"},
		{c.Target != "" && (c.Named() || c.From == shops.Docker), "",
			"--target names a running shop, and --mysql, --redis, --redlock, --zookeeper and --servers are for started " +
				"shops: leave out one or the other"},
		{c.Target != "" && !strings.HasPrefix(c.Target, "http://") && !strings.HasPrefix(c.Target, "https://"), "target",
			"want a URL such as http://localhost:8080"},
		{c.UI != "" && c.JSON+c.HTML+c.SVG+c.CSV != "", "", "--ui offers its reports in the browser: leave out --json, --html, --svg and --csv"},
		{c.HTML == "-" || c.SVG == "-" || c.CSV == "-", "", "--html, --svg and --csv want the name of a file: only --json writes to stdout"},
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
		return &web.InputError{Field: "buyers", Text: err.Error() + ": raise the limit, or set fewer buyers"}
	}
	return errors.Join(c.Check(), checkFile("json", c.JSON), checkFile("html", c.HTML), checkFile("svg", c.SVG), checkFile("csv", c.CSV))
}

// checkFile checks before the races whether a file can be written.
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

// Run holds the races, or serves the page that holds them.
func (c *raceCommand) Run(ctx context.Context, e environment) error {
	s := newScreen(e, c.JSON)
	s.lang = c.Lang
	few := &firstFew{to: e.stderr, left: 5} // errors of the shops: a thousand buyers often get the same one
	log := slog.New(slog.NewTextHandler(few, &slog.HandlerOptions{Level: slog.LevelError})).With("from", "shop")
	return loadTest{raceCommand: *c, screen: s, log: log, limit: 2 * time.Minute}.run(ctx)
}

// command returns the command line that repeats the run. It leaves out the files of the report, and the addresses of
// servers, which may contain passwords.
func (c *raceCommand) command() string {
	words := []string{"go run ./loadtest"}
	for _, f := range kong.Must(c).Model.Flags {
		text := fmt.Sprint(f.Target.Interface())
		switch f.Name {
		case "json", "html", "svg", "csv", "ui", "help":
			continue
		case "instances":
			if c.Target != "" {
				continue
			}
		case "mysql", "redis", "redlock", "zookeeper":
			if c.From == shops.Docker { // --servers docker has set the address
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
